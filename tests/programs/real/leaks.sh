# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# LeakSanitizer, which stops the process's threads by ptrace.
cat >prog.c <<'EOF'
#include <stdlib.h>
int main(void)
{
    char *volatile lost = malloc(77);
    lost = NULL;
    return lost != NULL;
}
EOF
target gcc -g -fsanitize=address -o prog prog.c
target ./prog 2>report
echo "prog $?"
grep -oE 'detected memory leaks|SUMMARY.*' report
rm -f prog report
