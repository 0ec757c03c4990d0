# SPDX-License-Identifier: Apache-2.0
# upgrade.mk: an agent of an earlier commit is upgraded while it works. That commit is built in a worktree below $(BUILD).

.PHONY: check-upgrade
check-upgrade: FROM_ID = $(shell git rev-parse --verify -q --short=12 '$(FROM)^{commit}')
check-upgrade: FROM_TREE = $(abspath $(BUILD))/from/$(FROM_ID)
check-upgrade: ## upgrade an agent of the commit FROM=60df0e3 while it runs 100 tasks (needs root)
	@[ -n "$(FROM_ID)" ] || { echo "check-upgrade needs FROM=commit, the agent to upgrade: '$(FROM)' is no commit" >&2; exit 2; }
	@[ -d $(FROM_TREE) ] || git worktree add --quiet --force --detach $(FROM_TREE) $(FROM_ID)
	@$(MAKE) --no-print-directory $(parallel) -C $(FROM_TREE) BUILD=build SAN= CRASH= WERROR= all
	@$(MAKE) --no-print-directory $(parallel) all
	@failed=0; export DROVER_BUILD=$(abspath $(BUILD)); \
	for check in check check_cluster; do \
		python3 -B tests/nomad/isolated.py tests/upgrade/$$check.py $(FROM_TREE)/build/drover-launcher || failed=1; \
	done; \
	exit $$failed
