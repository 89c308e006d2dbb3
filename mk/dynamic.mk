# SPDX-License-Identifier: Apache-2.0
#
# Dynamic programs for tests/runner/dynamic.py: tests/dynamic/X.c becomes
# build/dynamic/X, a position-independent program, and X-fixed at fixed
# addresses; lib_X.c (or .S) becomes libX.so. A line "/* flags: words */" has
# what a source needs besides. Lazy binding, unless a name ends in -now.
DYN := build/dynamic
DYN_FLAGS = -std=gnu11 $(GUEST_CFLAGS) -Wall -Wextra -Wno-nonnull \
	-Itests/guest -Itests/dynamic -U_FORTIFY_SOURCE -D_GNU_SOURCE
DYN_LINK = -L$(DYN) -Wl,-z,lazy -Wl,-rpath-link,$(DYN)
comma := ,
dyn_flags = $(shell sed -n 's|^/\* flags: *\(.*\) \*/.*|\1|p' $1)

DYN_LIB_SRCS := $(filter-out %/lib_tls.c,$(wildcard tests/dynamic/lib_*))
DYN_LIBS := $(patsubst lib_%,%,$(basename $(notdir $(DYN_LIB_SRCS)))) \
	tls_trad tls_desc tls_ie late_trad late_desc
DYN_PROGS := $(patsubst tests/dynamic/%.c,%,$(filter-out \
	tests/dynamic/lib_% tests/dynamic/interp.c,$(wildcard tests/dynamic/*.c)))
DYN_MORE := relro-now order-now ifunc-now execstack-start place-wide \
	lazy-now show-static interpreted interpreted-far interpreted-fixed

# --- libraries: the thread-local ones by each way to find a variable
define dyn_tls
$(DYN)/lib$1.so: tests/dynamic/lib_tls.c mk/dynamic.mk
	@mkdir -p $$(@D)
	$$(GUEST_CC) $$(DYN_FLAGS) -fPIC -shared -DNAME=$2 $3 -o $$@ $$<
endef
$(eval $(call dyn_tls,tls_trad,trad,-mtls-dialect=trad))
$(eval $(call dyn_tls,tls_desc,desc,-mtls-dialect=desc))
$(eval $(call dyn_tls,tls_ie,ie,-ftls-model=initial-exec))
$(eval $(call dyn_tls,late_trad,late_trad,-mtls-dialect=trad))
$(eval $(call dyn_tls,late_desc,late_desc,-mtls-dialect=desc))

# $(call dyn_needs,source): the libraries of ours that it names.
dyn_needs = $(patsubst -l%,$(DYN)/lib%.so,$(filter -l%,$(call dyn_flags,$1)))

# $(call dyn_lib,name,source)
define dyn_lib
$(DYN)/lib$1.so: $2 $(wildcard tests/dynamic/*.h) mk/dynamic.mk \
		$(call dyn_needs,$2)
	@mkdir -p $$(@D)
	$$(GUEST_CC) $$(DYN_FLAGS) -fPIC -shared -o $$@ $$< $$(DYN_LINK) \
		$(call dyn_flags,$2)
endef
$(foreach s,$(DYN_LIB_SRCS),\
	$(eval $(call dyn_lib,$(patsubst lib_%,%,$(basename $(notdir $s))),$s)))

# --- programs: $(call dyn_program,name,source,flags)
define dyn_program
$(DYN)/$1: tests/dynamic/$2.c $(wildcard tests/dynamic/*.h tests/guest/*.h) \
		mk/dynamic.mk $(call dyn_needs,tests/dynamic/$2.c)
	@mkdir -p $$(@D)
	$$(GUEST_CC) $$(DYN_FLAGS) -o $$@ $$< $$(DYN_LINK) \
		$(call dyn_flags,tests/dynamic/$2.c) $3
endef
$(foreach p,$(DYN_PROGS),\
	$(eval $(call dyn_program,$p,$p,-fPIE -pie)) \
	$(eval $(call dyn_program,$p-fixed,$p,-fno-pie -no-pie)))
$(foreach p,relro order ifunc lazy,\
	$(eval $(call dyn_program,$p-now,$p,-fPIE -pie -Wl$(comma)-z$(comma)now)))
$(eval $(call dyn_program,execstack-start,execstack,-Wl$(comma)-z$(comma)execstack))
$(eval $(call dyn_program,place-wide,place,-fPIE -pie -Wl$(comma)-z$(comma)max-page-size=0x200000))
$(eval $(call dyn_program,show-static,show,-static -no-pie))

# --- other interpreters: $(call dyn_interp,suffix,linked at,flags)
define dyn_interp
$(DYN)/interp$1: tests/dynamic/interp.c mk/dynamic.mk
	@mkdir -p $$(@D)
	$$(GUEST_CC) $$(DYN_FLAGS) -nostdlib -fno-stack-protector -DLINKED=$2 \
		-o $$@ $$< $3
endef
$(eval $(call dyn_interp,,0,-fPIE -static-pie))
$(eval $(call dyn_interp,-far,0x30000,-fPIE -shared \
	-Wl$(comma)-Ttext-segment=0x30000$(comma)-e$(comma)_start))
$(eval $(call dyn_interp,-fixed,0x400000,-fno-pie -static -no-pie))
$(foreach s,-far -fixed,$(eval $(call dyn_program,interpreted$s,show,\
	-Wl$(comma)--dynamic-linker=/tmp/dynamic/interp$s)))
$(eval $(call dyn_program,interpreted,show,\
	-Wl$(comma)--dynamic-linker=/tmp/dynamic/interp))
$(DYN)/interpreted: $(DYN)/interp
$(DYN)/interpreted-far: $(DYN)/interp-far
$(DYN)/interpreted-fixed: $(DYN)/interp-fixed

# --- the C library they run with: the compiler's own
$(DYN)/lib/.made: mk/dynamic.mk
	@mkdir -p $(@D)
	for name in ld-linux-aarch64.so.1 libc.so.6 libm.so.6 libgcc_s.so.1; do \
		cp -L "$$($(GUEST_CC) -print-file-name=$$name)" $(@D)/ || exit 1; \
	done
	touch $@

.PHONY: dynamic
dynamic: $(DYN_PROGS:%=$(DYN)/%) $(DYN_PROGS:%=$(DYN)/%-fixed) \
	$(DYN_MORE:%=$(DYN)/%) $(DYN_LIBS:%=$(DYN)/lib%.so) $(DYN)/lib/.made

# --- the same on musl: MUSL is a folder with Debian's musl and musl-dev
MUSL_ARCH = aarch64-linux-musl
MUSL_LIB = $(MUSL)/usr/lib/$(MUSL_ARCH)
MUSL_FLAGS = $(filter-out -D_FORTIFY_SOURCE%,$(DYN_FLAGS)) -nostdinc \
	-isystem $(MUSL)/usr/include/$(MUSL_ARCH) -fno-stack-protector \
	-Dstrerrorname_np=strerror
MUSL_LINK = -nostdlib -L$(DYN)/musl -Wl,-rpath-link,$(DYN)/musl
MUSL_PROGS := order tls show
MUSL_LIBS := order_a order_b tls_trad tls_desc tls_ie late_trad late_desc

# $(call musl_lib,name,source,flags); what it names must be there before.
define musl_lib
$(DYN)/musl/lib$1.so: $2 mk/dynamic.mk $$(patsubst $(DYN)/%,$(DYN)/musl/%,\
		$(call dyn_needs,$2))
	@mkdir -p $$(@D)
	$$(GUEST_CC) $$(MUSL_FLAGS) -fPIC -shared $3 -o $$@ $$< $$(MUSL_LINK) \
		$(call dyn_flags,$2)
endef
$(eval $(call musl_lib,order_a,tests/dynamic/lib_order_a.c,))
$(eval $(call musl_lib,order_b,tests/dynamic/lib_order_b.c,))
$(eval $(call musl_lib,tls_trad,tests/dynamic/lib_tls.c,-DNAME=trad -mtls-dialect=trad))
$(eval $(call musl_lib,tls_desc,tests/dynamic/lib_tls.c,-DNAME=desc -mtls-dialect=desc))
$(eval $(call musl_lib,tls_ie,tests/dynamic/lib_tls.c,-DNAME=ie -ftls-model=initial-exec))
$(eval $(call musl_lib,late_trad,tests/dynamic/lib_tls.c,-DNAME=late_trad -mtls-dialect=trad))
$(eval $(call musl_lib,late_desc,tests/dynamic/lib_tls.c,-DNAME=late_desc -mtls-dialect=desc))

$(DYN)/musl/%: tests/dynamic/%.c $(MUSL_LIBS:%=$(DYN)/musl/lib%.so) \
		mk/dynamic.mk
	$(GUEST_CC) $(MUSL_FLAGS) -fPIE -pie -o $@ $(MUSL_LIB)/Scrt1.o \
		$(MUSL_LIB)/crti.o $< $(MUSL_LINK) $(call dyn_flags,$<) \
		-L$(MUSL)/lib/$(MUSL_ARCH) -lc -lgcc $(MUSL_LIB)/crtn.o \
		-Wl,--dynamic-linker=/lib/ld-musl-aarch64.so.1
$(DYN)/musl/ld-musl-aarch64.so.1:
	@mkdir -p $(@D)
	cp $(MUSL)/lib/ld-musl-aarch64.so.1 $@

.PHONY: dynamic-musl
dynamic-musl: $(MUSL_PROGS:%=$(DYN)/musl/%) $(DYN)/musl/ld-musl-aarch64.so.1
