# SPDX-License-Identifier: Apache-2.0
# Unit tests: tests/unit/test_X.c becomes build/unit/asan/test_X (ASan and
# UBSan) and build/unit/tsan/test_X (for those with a line "/* threaded */").
# A line "/* sources: src/mm/vma.c ... */" in the test names what it needs
# beside itself, "/* libraries: -lm */" what to link. Functions that a test
# does not reach are dropped by the linker, with what they would need.
UNIT_TESTS := $(patsubst tests/unit/%.c,%,$(wildcard tests/unit/test_*.c))
UNIT_THREADED := $(if $(UNIT_TESTS),$(patsubst tests/unit/%.c,%,$(shell \
	grep -l '^/\* threaded \*/' $(UNIT_TESTS:%=tests/unit/%.c))))

UNIT_FLAGS := -O1 -g -std=gnu11 $(WARN) -fno-omit-frame-pointer \
	-fno-strict-aliasing -ffunction-sections -fdata-sections -pthread
UNIT_CPPFLAGS := -Isrc -Itests/unit -D_GNU_SOURCE \
	-DELFUSE_VERSION='"$(VERSION)"' -MMD -MP
UNIT_asan := -fsanitize=address,undefined -fno-sanitize-recover=all
# A fence orders a span against an unmap; what it publishes has acquire and
# release of its own, so that ThreadSanitizer need not understand it.
UNIT_tsan := -fsanitize=thread -Wno-tsan

# $(call unit_line,test_X,key): the words of "/* key: words */".
unit_line = $(shell sed -n 's|^/\* $2: *\(.*\) \*/.*|\1|p' tests/unit/$1.c)

# $(call unit_rules,sanitizer)
define unit_rules
build/unit/$1/obj/%.o: %.c
	@mkdir -p $$(@D)
	$$(HOST_CC) $$(UNIT_CPPFLAGS) $$(UNIT_FLAGS) $$(UNIT_$1) -c -o $$@ $$<
endef
$(foreach s,asan tsan,$(eval $(call unit_rules,$s)))

# $(call unit_program,sanitizer,test_X)
define unit_program
build/unit/$1/$2: $(patsubst %.c,build/unit/$1/obj/%.o,\
		tests/unit/$2.c $(call unit_line,$2,sources))
	$$(HOST_CC) $$(UNIT_FLAGS) $$(UNIT_$1) -Wl,--gc-sections -o $$@ $$^ \
		-lcmocka $(call unit_line,$2,libraries)
endef
$(foreach t,$(UNIT_TESTS),$(eval $(call unit_program,asan,$t)))
$(foreach t,$(UNIT_THREADED),$(eval $(call unit_program,tsan,$t)))

.PHONY: unit
unit: $(UNIT_TESTS:%=build/unit/asan/%) $(UNIT_THREADED:%=build/unit/tsan/%)
-include $(shell find build/unit -name '*.d' 2>/dev/null)
