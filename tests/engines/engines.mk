# SPDX-License-Identifier: Apache-2.0
# engines.mk: containers beside other engines. Included by the Makefile, after the tests with real servers.

.PHONY: check-containers
check-containers: all $(BUILD)/tests/reach ## compare containers and their ports with dockerd's, and run an image of 1 GB (needs root, docker.io, skopeo, zstd, busybox-static)
	@failed=0; export DROVER_BUILD=$(abspath $(BUILD)); \
	python3 -B tests/nomad/isolated.py tests/engines/check_inside.py || failed=1; \
	python3 -B tests/nomad/isolated.py tests/engines/check_ports.py || failed=1; \
	python3 -B tests/nomad/isolated.py tests/engines/check_large.py || failed=1; \
	exit $$failed
