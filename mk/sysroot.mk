# SPDX-License-Identifier: Apache-2.0
# make sysroot: a Debian arm64 root with real software, as an image for
# tools/elfuse-vm --root. PROFILE=small is the one that make check uses.
PROFILE ?= full
.PHONY: sysroot
sysroot: deps-vm
	@tools/sysroot $(PROFILE)
