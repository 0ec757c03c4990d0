# SPDX-License-Identifier: Apache-2.0
# engines.mk: containers beside other engines. Included by the Makefile, after the tests with real servers.

.PHONY: check-containers
check-containers: all ## compare the inside of a container with dockerd's and podman's (needs root, docker.io and busybox-static)
	@DROVER_BUILD=$(abspath $(BUILD)) python3 -B tests/nomad/isolated.py tests/engines/check_inside.py
