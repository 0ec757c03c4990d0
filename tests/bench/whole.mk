# SPDX-License-Identifier: Apache-2.0
# whole.mk: `make bench`. Included after exec.mk, which names the programs.

# Built with the tests, which shows a change that breaks a benchmark.
tests: $(BENCH_PROGRAMS)

.PHONY: bench
bench: $(BINARIES) $(BENCH_PROGRAMS) ## measure rates, memory and latency against their budgets (needs root)
	@[ "$$(id -u)" = 0 ] || { echo "make bench needs root: it starts an agent" >&2; exit 1; }
	@DROVER_BUILD=$(BUILD) tests/bench/bench_agent.py $(BENCH)

.PHONY: bench-containers
bench-containers: $(BINARIES) ## measure containers beside dockerd and podman, where they are installed (needs root)
	@DROVER_BUILD=$(abspath $(BUILD)) python3 -B tests/nomad/isolated.py tests/bench/bench_containers.py
