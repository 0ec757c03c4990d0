# SPDX-License-Identifier: Apache-2.0
# csi_bad.mk: the CSI plugin that misbehaves on command, with csi-local's server code.

# for CSI_BAD_MOUNTER; also for a test of mount-helper
CHECK_PACKAGES += bindfs

CSI_BAD_OBJS := $(call objs,tests/peers/csi_bad.c tests/peers/csi_bad_answers.c tests/peers/csi_bad_behaviours.c \
    tests/peers/csi_bad_expect.c contrib/csi-local/csl_grpc.c)

$(BUILD)/tests/csi_bad: $(CSI_BAD_OBJS) $(LIBS_TREE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(CSI_BAD_OBJS) -Wl,--start-group $(LIBS_TREE) -Wl,--end-group \
	    $(LIBS_csi-local) -lpthread

TEST_PROGRAMS += $(BUILD)/tests/csi_bad
