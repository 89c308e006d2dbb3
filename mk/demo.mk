# SPDX-License-Identifier: Apache-2.0
# make demo: what elfuse does, in a minute or two, from nothing.
.PHONY: demo
demo: deps-build deps-vm
	@echo "Building..."
	@$(MAKE) --no-print-directory -s all guest-bench
	@bench/demo
