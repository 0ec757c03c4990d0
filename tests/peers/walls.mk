# SPDX-License-Identifier: Apache-2.0
# walls.mk: the program with which a task tries to reach things outside its allocation; static, so that it runs in any root.

$(BUILD)/tests/walls: tests/peers/walls.c
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(filter-out -fsanitize% -fno-sanitize%,$(CFLAGS)) -static -o $@ $<

TEST_PROGRAMS += $(BUILD)/tests/walls
