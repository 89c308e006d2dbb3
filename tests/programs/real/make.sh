# SPDX-License-Identifier: Apache-2.0
# shellcheck shell=sh disable=SC2154
# make -j2 of a program of 24 files, then nothing to do, then one file anew.
n=0
while [ $n -lt 24 ]; do
    echo "int part$n(int x) { return x * $n + 1; }" >part$n.c
    n=$((n + 1))
done
{
    seq 0 23 | sed 's/.*/int part&(int x);/'
    echo '#include <stdio.h>'
    echo 'int main(void) { long sum = 0;'
    seq 0 23 | sed 's/.*/sum += part&(&);/'
    printf '%s\n' 'printf("%ld\n", sum); return 0; }'
} >main.c
cat >Makefile <<'EOF'
OBJECTS := main.o $(patsubst %.c,%.o,$(wildcard part*.c))
program: $(OBJECTS)
	@gcc -o $@ $^ && echo linked
%.o: %.c
	@gcc -O1 -c -o $@ $< && echo $@ >>log
FILES := $(shell ls *.c | wc -l)
check: program
	@test "$$(./program)" = 4348 && echo "checked $(FILES) files"
	@$(MAKE) --no-print-directory deeper
deeper:
	@echo "level $(MAKELEVEL)"
fail:
	@exit 3
.PHONY: check deeper fail
EOF
target make -j2 check
target ./program
sort log | wc -l
target make -j2
rm part7.o
target make -j2
target make -k -j2 fail check
echo "status $?"
rm -f ./*.o log program
