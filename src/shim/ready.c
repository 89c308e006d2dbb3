/* SPDX-License-Identifier: Apache-2.0 */
#include "shim/shim.h"

#include "shim/arch.h"

void shim_ready(vcpu_frame_t *frame)
{
    uint64_t isar0 = arch_isar0();

    tlb_note_features(isar0);
    frame->x[READY_ISAR0] = isar0;
    frame->x[READY_CNTPCT_BEFORE] = arch_cntpct();
    frame->x[READY_CNTVCT] = arch_cntvct();
    frame->x[READY_CNTPCT_AFTER] = arch_cntpct();
}
