# SPDX-License-Identifier: Apache-2.0
# make check runs everything; make check-PART one part of it (tests/run -h).
# ONLY=text restricts to the tests whose names contain the text. make
# check-programs has the long form besides, with real software.
CHECK_PARTS := selftest lint build unit fuzz vm cli guest dynamic cost small \
	pagefind software

.PHONY: check $(CHECK_PARTS:%=check-%)
check: deps-build deps-vm deps-check
	@tests/run --timings $(if $(ONLY),--only '$(ONLY)')
$(CHECK_PARTS:%=check-%): check-%: deps-build deps-vm deps-check
	@tests/run $(if $(ONLY),--only '$(ONLY)') $*
.PHONY: check-programs
check-programs: deps-build deps-vm deps-check deps-programs
	@tests/run --timings $(if $(ONLY),--only '$(ONLY)') programs \
		small pagefind software

# A program in Go, made on the build machine: static, threads from the start.
build/programs/go: tests/programs/go/main.go
	@mkdir -p $(@D)
	GOOS=linux GOARCH=arm64 CGO_ENABLED=0 GO111MODULE=off \
		go build -trimpath -o $@ $<
