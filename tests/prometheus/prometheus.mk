# SPDX-License-Identifier: Apache-2.0
# prometheus.mk: Prometheus itself reads an agent. Included by the Makefile.

.PHONY: check-prometheus
check-prometheus: all test-peers ## let Prometheus read an agent with 1,000 allocations, and promtool check its metrics, also those of a node of servers and of volumes (needs root; PROMETHEUS=directory of both programs, else of Debian's package)
	@[ -n "$(PROMETHEUS)" ] || tools/deps.sh prometheus
	@DROVER_BUILD=$(BUILD) python3 -B tests/nomad/isolated.py tests/prometheus/check.py $(or $(PROMETHEUS),/usr/bin)
	@DROVER_BUILD=$(BUILD) PROMETHEUS=$(or $(PROMETHEUS),/usr/bin) tests/run 6212 2374
