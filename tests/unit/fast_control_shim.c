/* SPDX-License-Identifier: Apache-2.0 */
/* The shim's side with rules that can be broken; see test_fast_control.c. */
#include "fast_control.h"

/* The files themselves. */
#include "../../src/shim/map.c"   // NOLINT(bugprone-suspicious-include)
#include "../../src/shim/unmap.c" // NOLINT(bugprone-suspicious-include)
