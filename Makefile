# SPDX-License-Identifier: Apache-2.0
# elfuse: native on arm64, cross build elsewhere. COMPILER=clang works too.
include mk/config.mk
include $(filter-out mk/config.mk,$(sort $(wildcard mk/*.mk)))

.PHONY: all clean
all: $(BUILD)/elfuse
clean:
	rm -rf $(BUILD)
