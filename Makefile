# SPDX-License-Identifier: Apache-2.0
# elfuse: native on arm64, cross build elsewhere. CC=clang works too.
include mk/config.mk
include mk/elfuse.mk
-include $(wildcard mk/[!ce]*.mk mk/check.mk)

.PHONY: all clean
all: $(BUILD)/elfuse
clean:
	rm -rf $(BUILD)
