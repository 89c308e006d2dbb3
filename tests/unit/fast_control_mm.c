/* SPDX-License-Identifier: Apache-2.0 */
/* The host's side with rules that can be broken; see test_fast_control.c. */
#include "fast_control.h"

/* The files themselves. */
#include "../../src/mm/drain.c" // NOLINT(bugprone-suspicious-include)
#include "../../src/mm/gate.c"  // NOLINT(bugprone-suspicious-include)
