# SPDX-License-Identifier: Apache-2.0
# libFuzzer targets: tests/fuzz/fuzz_X.c becomes build/fuzz/fuzz_X, with ASan
# and UBSan. Its line "/* sources: ... */" names what it needs beside itself.
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_FLAGS := -O1 -g -std=gnu11 -Isrc -D_GNU_SOURCE \
	-DELFUSE_VERSION='"$(VERSION)"' -fno-strict-aliasing \
	-ffunction-sections -fdata-sections -Wl,--gc-sections -pthread \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
fuzz_sources = $(shell sed -n 's|^/\* sources: *\(.*\) \*/.*|\1|p' \
	tests/fuzz/$1.c)

define fuzz_program
build/fuzz/$1: tests/fuzz/$1.c $(call fuzz_sources,$1) $(wildcard src/*/*.h) tests/fuzz/fuzz.h
	@mkdir -p $$(@D)
	clang $$(FUZZ_FLAGS) -o $$@ $$(filter %.c,$$^)
endef
$(foreach f,$(FUZZERS),$(eval $(call fuzz_program,$f)))

.PHONY: fuzz
fuzz: $(FUZZERS:%=build/fuzz/%)
