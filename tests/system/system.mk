# SPDX-License-Identifier: Apache-2.0
# system.mk: programs that the system tests need beside the binaries.

$(BUILD)/tests/mk_config: tests/peers/mk_config.c $(LIBS_TREE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS_TREE) -Wl,--end-group -lcap -lprotobuf-c

TEST_PROGRAMS += $(BUILD)/tests/mk_config
