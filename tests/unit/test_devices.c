// SPDX-License-Identifier: Apache-2.0
/* test_devices.c: which paths below /dev the patterns of a policy match. */
#include "common/cleanup.h"
#include "common/devices.h"
#include "proto/agent_config.h"
#include "tests/unit/unit.h"

static const struct config_devices policy = { .n = 4,
	.patterns = { "fuse", "dri/*", "snd/*/x", "video[0-9]" } };

START_TEST(what_a_policy_names)
{
	static const char *const paths[] = { "fuse", "dri/card0", "snd/a/x", "video3" };

	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		ck_assert_msg(devices_allow(&policy, paths[i]), "%s", paths[i]);
}
END_TEST

/* A pattern matches each component of a path for itself, and never "." and "..", nor nothing. */
START_TEST(what_it_does_not_name)
{
	static const char *const paths[] = { "", "fus", "fuse2", "fuse/", "/fuse", "./fuse", "dri",
		"dri/a/b", "dri/..", "dri/.", "dri/.x", "dri/../mem", "dri//x", "snd//x",
		"snd/../x", "snd/./x", "snd/a/b/x", "snd/a//x", "video", "video10", "video[0-9]",
		"DRI/card0" };

	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		ck_assert_msg(!devices_allow(&policy, paths[i]), "%s", paths[i]);
	ck_assert(!devices_allow(&(struct config_devices){ 0 }, "fuse"));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, what_a_policy_names);
	tcase_add_test(tc, what_it_does_not_name);
}

int
main(void)
{
	return unit_run("devices", add);
}
