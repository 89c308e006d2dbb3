# SPDX-License-Identifier: Apache-2.0
# make check runs everything; make check-PART one part of it (tests/run -h).
# ONLY=text restricts to the tests whose names contain the text.
CHECK_PARTS := selftest lint build unit fuzz vm cli guest cost programs

.PHONY: check $(CHECK_PARTS:%=check-%)
check: deps-build deps-vm deps-check
	@tests/run --timings $(if $(ONLY),--only '$(ONLY)')
$(CHECK_PARTS:%=check-%): check-%: deps-build deps-vm deps-check
	@tests/run $(if $(ONLY),--only '$(ONLY)') $*
