# SPDX-License-Identifier: Apache-2.0
# nomad.mk: an agent with real servers. Included by the Makefile, after the benches.

.PHONY: check-nomad check-csi check-csi-network bench-nomad
check-nomad: all ## test with a real server, NOMAD=path/to/nomad (needs root); NOMAD_NEXT=path and CSI_DRIVER='command' add two tests
	@failed=0; export DROVER_BUILD=$(BUILD); \
	python3 -B tests/nomad/check.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/check_commands.py "$(NOMAD)" || failed=1; \
	NOMAD_NEXT='$(NOMAD_NEXT)' CSI_DRIVER='$(value CSI_DRIVER)' \
		python3 -B tests/nomad/isolated.py tests/nomad/check_clusters.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_events.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_deployments.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_environment.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_networks.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_metrics.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_placement.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_variables.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_task_api.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_identities.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_templates.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_template_rights.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_artifacts.py "$(NOMAD)" || failed=1; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_containers.py "$(NOMAD)" || failed=1; \
	exit $$failed
check-csi: all ## test CSI_HOSTPATH=path/to/hostpathplugin alone and with NOMAD=path; CSI_HOSTPATH_OLD=path is upgraded in use
	@failed=0; export DROVER_BUILD=$(BUILD) CSI_HOSTPATH='$(CSI_HOSTPATH)' CSI_HOSTPATH_OLD='$(CSI_HOSTPATH_OLD)'; \
	for script in check_csi check_csi_moves; do \
		python3 -B tests/nomad/isolated.py tests/nomad/$$script.py "$(NOMAD)" || failed=1; \
	done; exit $$failed
check-csi-network: all ## test CSI drivers, CSI_S3=path GEESEFS=path S3_SERVER='command' and CSI_NFS=path NFS_MOUNT=path, also with NOMAD=path
	@failed=0; export DROVER_BUILD=$(BUILD) CSI_S3='$(CSI_S3)' GEESEFS='$(GEESEFS)' S3_SERVER='$(value S3_SERVER)'; \
	export CSI_NFS='$(CSI_NFS)' CSI_NFS_OLD='$(CSI_NFS_OLD)' NFS_MOUNT='$(NFS_MOUNT)'; \
	python3 -B tests/nomad/isolated.py tests/nomad/check_csi_network.py || failed=1; \
	if [ -n "$(NOMAD)" ]; then \
		[ -z "$$CSI_S3" ] || python3 -B tests/nomad/isolated.py tests/nomad/check_csi_network_cluster.py "$(NOMAD)" || failed=1; \
		python3 -B tests/nomad/isolated.py tests/nomad/check_csi_nfs.py "$(NOMAD)" || failed=1; \
		CSI_S3= python3 -B tests/nomad/isolated.py tests/nomad/check_csi_network_cluster.py "$(NOMAD)" || failed=1; \
	fi; exit $$failed
bench-nomad: $(BINARIES) $(BENCH_PROGRAMS) ## compare with the client of NOMAD=path/to/nomad (needs root)
	@DROVER_BUILD=$(BUILD) python3 -B tests/nomad/isolated.py tests/nomad/bench_nomad.py "$(NOMAD)"
