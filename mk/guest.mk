# SPDX-License-Identifier: Apache-2.0
#
# Guest tests: every tests/guest/*.c is one static arm64 program in
# build/guest/, every bench/*.c one in build/bench/. They are run on a real
# arm64 kernel and under elfuse; see tests/guest/README.md.

GUEST_CC ?= $(CROSS)gcc
# No builtin calls folded away: the tests want the loads, stores and calls
# which they spell out. No fortification: bad pointers are passed on purpose.
GUEST_CFLAGS ?= -O2 -g
GUEST_FLAGS  := -std=gnu11 -static -fno-pie -no-pie -Wall -Wextra \
                -Wno-nonnull -Wno-stringop-overflow -Wno-array-bounds \
                -U_FORTIFY_SOURCE -D_GNU_SOURCE

GUEST_PROGS := $(patsubst tests/guest/%.c,build/guest/%,\
                 $(wildcard tests/guest/*.c))
GUEST_BENCH := $(patsubst bench/%.c,build/bench/%,$(wildcard bench/*.c))

build/guest/%: tests/guest/%.c $(wildcard tests/guest/*.h) mk/guest.mk
	@mkdir -p $(@D)
	$(GUEST_CC) $(GUEST_FLAGS) $(GUEST_CFLAGS) -o $@ $<

build/bench/%: bench/%.c mk/guest.mk
	@mkdir -p $(@D)
	$(GUEST_CC) $(GUEST_FLAGS) $(GUEST_CFLAGS) -o $@ $<

.PHONY: guest guest-bench
guest: $(GUEST_PROGS)
guest-bench: $(GUEST_BENCH)
