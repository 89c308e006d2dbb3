/* SPDX-License-Identifier: Apache-2.0 */
/* flags: -ltextrel */
/* A library whose text is written when it is relocated, and then runs. */
#include "mem.h"

int textrel_value(void);
extern int textrel_data;

int main(void)
{
    static vma_t v;
    is(textrel_value(), 4711, "the text has been relocated");
    textrel_data = 12;
    is(textrel_value(), 12, "to where the data is");
    need(vma_find((void *) textrel_value, &v), "its mapping");
    is_str(v.perms, "r-xp", "and cannot be written any more");
    return tap_done();
}
