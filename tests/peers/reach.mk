# SPDX-License-Identifier: Apache-2.0
# reach.mk: the program that finds out which addresses reach which; static, so that it runs in any root.

$(BUILD)/tests/reach: tests/peers/reach.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS)) -static -o $@ $<

TEST_PROGRAMS += $(BUILD)/tests/reach
