# SPDX-License-Identifier: Apache-2.0
# inside.mk: the program that inspects a task from inside; static, so that it runs in any root.

$(BUILD)/tests/inside: tests/peers/inside.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS)) -static -o $@ $<

TEST_PROGRAMS += $(BUILD)/tests/inside
