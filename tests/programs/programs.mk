# SPDX-License-Identifier: Apache-2.0
# programs.mk: programs that people run, as exec tasks. Included by the Makefile, after the benches.

.PHONY: check-programs
check-programs: all ## run servers from Debian's packages as exec tasks: fill them, restart them, find their data (needs root); with NOMAD=path by that client too
	@tests/programs/packages.sh
	@DROVER_BUILD=$(BUILD) python3 -B tests/nomad/isolated.py tests/programs/check.py
	@[ -z "$(NOMAD)" ] || python3 -B tests/nomad/isolated.py tests/nomad/check_programs.py "$(NOMAD)"
