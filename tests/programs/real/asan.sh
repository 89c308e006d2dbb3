# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# AddressSanitizer: its reservation of address space, its reports.
cat >prog.c <<'EOF'
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *work(void *n)
{
    char *text = malloc(1000);
    memset(text, 'a' + (int) (long) n, 999);
    text[999] = 0;
    return text;
}

int main(int argc, char **argv)
{
    int mode = argc > 1 ? atoi(argv[1]) : 0;
    pthread_t threads[4];
    size_t length = 0;
    for (long n = 0; n < 4; n++)
        if (pthread_create(&threads[n], NULL, work, (void *) n))
            abort();
    for (int n = 0; n < 4; n++) {
        char *text;
        pthread_join(threads[n], (void **) &text);
        length += strlen(text);
        free(text);
        if (mode == 2 && n == 3)
            length += (size_t) text[5];
    }
    printf("%zu\n", length);
    volatile int big = 11;
    int local[10] = {0};
    if (mode == 1)
        local[big] = 1;
    char *volatile lost = malloc(77);
    if (mode == 3)
        lost = NULL;
    free(lost);
    return local[0];
}
EOF
target gcc -g -O1 -fsanitize=address,undefined -o prog prog.c -pthread
echo "gcc $?"
kinds() {
    grep -oE 'ERROR: [A-Za-z]+: [a-z-]+|runtime error: .*|(READ|WRITE) of size.*thread T[0-9]+|^[0-9]+$|SUMMARY.*in [a-z]+|[0-9]+ byte\(s\) leaked' |
        sed 's|address 0x[0-9a-f]*|address|; s| at 0x[0-9a-f]*||'
}
for mode in 0 1 2; do
    ASAN_OPTIONS=detect_leaks=0 target ./prog $mode 2>report
    echo "mode $mode: $?"
    kinds <report
done
rm -f prog report
