# SPDX-License-Identifier: Apache-2.0
# make demo: what elfuse does, in a few minutes, from nothing.
.PHONY: demo
demo: deps-build deps-vm
	@echo "Building elfuse and the demo's programs..."
	@$(MAKE) --no-print-directory -s -j"$$(nproc)" all guest-bench
	@bench/demo
