# SPDX-License-Identifier: Apache-2.0
# Tools and flags. BUILD may be set to build elsewhere (clang, sanitizers).
.DEFAULT_GOAL := all
BUILD ?= build
HOST_ARCH := $(shell uname -m)

ifeq ($(HOST_ARCH),aarch64)
CROSS ?=
else
CROSS ?= aarch64-linux-gnu-
endif

# The arm64 compiler: COMPILER=gcc or clang.
COMPILER ?= gcc
ifeq ($(COMPILER),clang)
ARM_CC := clang --target=aarch64-linux-gnu
else
ARM_CC := $(CROSS)gcc
endif
OBJCOPY := $(CROSS)objcopy
LD := $(CROSS)ld
# The build machine's compiler, for unit tests and tools.
HOST_CC ?= gcc

VERSION := 0.1
WARN := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes \
	-Wundef -Wvla -Wno-unused-parameter -Werror
CPPFLAGS += -Isrc -D_GNU_SOURCE -DELFUSE_VERSION='"$(VERSION)"'
CFLAGS ?= -O2 -g
CFLAGS += -std=gnu11 $(WARN) -MMD -MP -fno-strict-aliasing
