# SPDX-License-Identifier: Apache-2.0
# make prove: the contracts of src/proved hold (Frama-C WP, every goal), and
# would not hold for the broken variants in tests/prove/mutants.
.PHONY: prove
prove: deps-build deps-prove
	@tests/run $(if $(ONLY),--only '$(ONLY)') prove
