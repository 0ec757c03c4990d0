# SPDX-License-Identifier: Apache-2.0
# fuse_hang.mk: the FUSE file system that never answers statfs.

CHECK_PACKAGES += libfuse3-dev

$(BUILD)/tests/fuse_hang: tests/peers/fuse_hang.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -I/usr/include/fuse3 -o $@ $< -lfuse3

TEST_PROGRAMS += $(BUILD)/tests/fuse_hang
BENCH_PROGRAMS += $(BUILD)/tests/fuse_hang
