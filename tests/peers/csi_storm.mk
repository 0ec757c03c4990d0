# SPDX-License-Identifier: Apache-2.0
# csi_storm.mk: many random sequences with CSI volumes.

.PHONY: csi-storm
csi-storm: all $(BUILD)/tests/csi_bad ## 10,000 random sequences with CSI volumes and killed processes (needs root); SEED=N COUNT=1 repeats one
	@DROVER_BUILD=$(BUILD) STORM_SEED=$(or $(SEED),1) STORM_COUNT=$(or $(COUNT),10000) STORM_LANES=$(or $(LANES),25) \
		python3 -B tests/nomad/isolated.py tests/system/volumes/2362_storm.py
