# SPDX-License-Identifier: Apache-2.0
# The arm64 program: shim (EL1, embedded as bytes), vDSO (likewise), host side.
HOST_SRCS := $(wildcard src/*.c src/hv/kvm/*.c src/mm/*.c src/proc/*.c \
	src/sys/*.c)
HOST_OBJS := $(HOST_SRCS:src/%.c=$(BUILD)/obj/%.o) $(BUILD)/obj/proc/blocking.o

# --- the shim: freestanding, linked at SHIM_VA
SHIM_SRCS := $(wildcard src/shim/*.c) $(wildcard src/shim/*.S)
SHIM_OBJS := $(patsubst src/shim/%,$(BUILD)/shim/%.o,$(SHIM_SRCS))
SHIM_CFLAGS := -O2 -g -std=gnu11 $(WARN) -MMD -MP -ffreestanding -nostdlib \
	-mgeneral-regs-only -march=armv8-a -mno-outline-atomics \
	-fno-stack-protector -fno-pic -fno-pie -mcmodel=small \
	-fno-asynchronous-unwind-tables -fno-strict-aliasing

$(BUILD)/shim/%.o: src/shim/% | $(BUILD)/shim
	$(ARM_CC) $(SHIM_CFLAGS) -Isrc -c -o $@ $<
$(BUILD)/shim/shim.elf: $(SHIM_OBJS) src/shim/shim.lds
	$(LD) -nostdlib -static -T src/shim/shim.lds -o $@ $(SHIM_OBJS)
$(BUILD)/shim/shim.bin: $(BUILD)/shim/shim.elf
	$(OBJCOPY) -O binary $< $@

# --- the vDSO: a shared object for EL0
VDSO_SRCS := $(wildcard src/vdso/*.c) $(wildcard src/vdso/*.S)
VDSO_CFLAGS := -O2 -std=gnu11 $(WARN) -fPIC -shared -nostdlib -ffreestanding \
	-march=armv8-a -mno-outline-atomics -mgeneral-regs-only \
	-fno-stack-protector -fasynchronous-unwind-tables -s \
	-Wl,--eh-frame-hdr,-soname,linux-vdso.so.1,--hash-style=both,--build-id=none \
	-Wl,-z,max-page-size=4096,-z,noexecstack
$(BUILD)/vdso/vdso.so: $(VDSO_SRCS) src/vdso/vdso.lds $(wildcard src/abi/*.h) \
		| $(BUILD)/vdso
	$(ARM_CC) $(VDSO_CFLAGS) -Isrc -Wl,-T,src/vdso/vdso.lds -o $@ $(VDSO_SRCS)

# --- both as bytes: src/embed.S uses .incbin
$(BUILD)/obj/embed.o: src/embed.S $(BUILD)/shim/shim.bin \
		$(BUILD)/vdso/vdso.so | $(BUILD)/obj
	$(ARM_CC) -I$(BUILD) -c -o $@ $<

$(BUILD)/obj/proc/blocking.o: src/proc/blocking.S
	@mkdir -p $(@D)
	$(ARM_CC) -c -o $@ $<

$(BUILD)/obj/%.o: src/%.c
	@mkdir -p $(@D)
	$(ARM_CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

$(BUILD)/elfuse: $(HOST_OBJS) $(BUILD)/obj/embed.o
	$(ARM_CC) $(CFLAGS) -static -pthread -o $@ $^ $(LDFLAGS)

$(BUILD)/shim $(BUILD)/vdso $(BUILD)/obj:
	@mkdir -p $@

-include $(HOST_OBJS:.o=.d) $(SHIM_OBJS:.o=.d)
