# SPDX-License-Identifier: Apache-2.0
# What a target needs of the system; nothing is installed that is there.
# NODEPS=1 leaves the system alone.
define deps
.PHONY: deps-$1
deps-$1:
	$$(if $$(NODEPS),@true,@tools/install-deps $1)
endef
$(foreach s,build vm check programs prove,$(eval $(call deps,$s)))
