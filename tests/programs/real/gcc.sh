# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# gcc compiles, assembles and links; what it made runs.
cat >hello.c <<'EOF'
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static void *work(void *n)
{
    double *sum = malloc(sizeof *sum);
    *sum = 0;
    for (long i = 1; i <= 100000 * (long) n; i++)
        *sum += sqrt((double) i);
    return sum;
}

int main(int argc, char **argv)
{
    pthread_t threads[4];
    for (long n = 0; n < 4; n++)
        if (pthread_create(&threads[n], NULL, work, (void *) n))
            abort();
    for (int n = 0; n < 4; n++) {
        double *sum;
        pthread_join(threads[n], (void **) &sum);
        printf("%d: %.6f\n", n, *sum);
        free(sum);
    }
    return argc > 1 ? atoi(argv[1]) : 0;
}
EOF
for options in -O0 "-O2 -flto" "-O2 -static" "-Os -static-pie" "-O1 -g -pipe"; do
    # shellcheck disable=SC2086 # several options
    target gcc -Wall $options -o hello hello.c -lm -pthread
    echo "gcc $options: $?"
    target ./hello 3
    echo "hello: $?"
done
target gcc -O2 -S -o hello.s hello.c && target as -o hello.o hello.s &&
    target gcc -o hello hello.o -lm && target ./hello | tail -n 1
target musl-gcc -static -o hello hello.c -lm && target ./hello | tail -n 1
echo 'int main(void) { return nothing; }' >bad.c
target gcc bad.c
echo "status $?"
echo 'extern int f(void); int main(void) { return f(); }' >unlinked.c
target gcc unlinked.c 2>&1 | sed 's/cc[A-Za-z0-9]*\.o/X.o/'
echo 'int f(void) { return 42; }' >f.c
target gcc -shared -fPIC -o libf.so f.c &&
    target gcc -o main unlinked.c -L. -lf "-Wl,-rpath,$PWD" && target ./main
echo "status $?"
target nm hello.o | grep ' T '
target objdump -d hello.o | grep -c ret
target size f.c
target strip main
target ar rc lib.a hello.o && target ar t lib.a
rm -f hello* main libf.so lib.a a.out
