/* SPDX-License-Identifier: Apache-2.0 */
/* Calls what nobody has. */
int nowhere(void);
int undefined(void);

int undefined(void)
{
    return nowhere();
}
