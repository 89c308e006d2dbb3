/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -Wl,-z,execstack */
int execstack(void);

int execstack(void)
{
    return 1;
}
