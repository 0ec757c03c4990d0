# SPDX-License-Identifier: Apache-2.0
# nomad.mk: an agent with real servers. Included by the Makefile, after the benches.

.PHONY: check-nomad bench-nomad
check-nomad: all ## with a real server of NOMAD=path/to/nomad, as root; NOMAD_NEXT=path and CSI_DRIVER='command' for two tests more
	@failed=0; export DROVER_BUILD=$(BUILD); \
	python3 -B tests/nomad/check.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/check_commands.py "$(NOMAD)" || failed=1; \
	NOMAD_NEXT='$(NOMAD_NEXT)' CSI_DRIVER='$(value CSI_DRIVER)' \
		python3 -B tests/nomad/isolated.py tests/nomad/check_clusters.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_events.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_deployments.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_environment.py "$(NOMAD)" || failed=1; \
	exit $$failed
bench-nomad: $(BINARIES) $(BENCH_PROGRAMS) ## beside the client of NOMAD=path/to/nomad, as root
	@DROVER_BUILD=$(BUILD) python3 -B tests/nomad/isolated.py tests/nomad/bench_nomad.py "$(NOMAD)"
