# SPDX-License-Identifier: Apache-2.0
# prometheus.mk: Prometheus itself reads an agent. Included by the Makefile.

.PHONY: check-prometheus
check-prometheus: all ## let Prometheus read an agent with 1,000 allocations, and promtool check its metrics (needs root; PROMETHEUS=directory of both programs, else of Debian's package)
	@[ -n "$(PROMETHEUS)" ] || tools/deps.sh prometheus
	@DROVER_BUILD=$(BUILD) python3 -B tests/nomad/isolated.py tests/prometheus/check.py $(or $(PROMETHEUS),/usr/bin)
