# SPDX-License-Identifier: Apache-2.0
# csi_told.mk: the CSI plugin whose answers are files, with csi-local's server code.

CSI_TOLD_OBJS := $(call objs,tests/peers/csi_told.c contrib/csi-local/csl_grpc.c)

$(BUILD)/tests/csi_told: $(CSI_TOLD_OBJS) $(LIBS_TREE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(CSI_TOLD_OBJS) -Wl,--start-group $(LIBS_TREE) -Wl,--end-group \
	    $(LIBS_csi-local) -lpthread

TEST_PROGRAMS += $(BUILD)/tests/csi_told
