# SPDX-License-Identifier: Apache-2.0
# nomad.mk: an agent with real servers. Included by the Makefile.

.PHONY: check-nomad
check-nomad: all ## with a real server of NOMAD=path/to/nomad, as root
	DROVER_BUILD=$(BUILD) python3 -B tests/nomad/check.py "$(NOMAD)"
