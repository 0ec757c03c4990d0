# SPDX-License-Identifier: Apache-2.0
# idle.mk: the programs of an agent whose supervisor has idle_client.c instead of alloc/client.c. Included before
# whole.mk, which runs them.

IDLE := $(BUILD)/tests/idle
$(IDLE)/drover-supervisor: $(BUILD)/obj/supervisor/sup_main.o $(BUILD)/obj/tests/bench/idle_client.o $(BUILD)/libsupervisor.a $(LIBS_TREE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(filter %.o,$^) -Wl,--start-group $(filter %.a,$^) -Wl,--end-group $(LIBS_supervisor)
# The launcher starts the other programs from its own directory.
$(IDLE)/drover-launcher: $(BINARIES) $(IDLE)/drover-supervisor
	$(Q)for p in $(filter $(BUILD)/drover-%,$(filter-out %-supervisor,$(BINARIES))); do ln -f $$p $(IDLE)/; done

BENCH_PROGRAMS += $(IDLE)/drover-launcher
