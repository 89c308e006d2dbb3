/* SPDX-License-Identifier: Apache-2.0 */
/* Which rule is broken: one of those of abi/fast.h, chosen when the test runs.
 */
#ifndef TESTS_UNIT_FAST_CONTROL_H
#define TESTS_UNIT_FAST_CONTROL_H

extern int fast_break;
#define FAST_BREAK fast_break

#endif
