// SPDX-License-Identifier: Apache-2.0
/* fuzz_config.c: any text as a configuration file, HCL or JSON. An error names file, line and
 * column. */
#include <string.h>

#include "config/config.h"
#include "tests/fuzz/fuzz.h"

/* config_check() reports problems of the combination of several files, without a place. */
static void
note_problem(void *arg, bool is_error, const char *text)
{
	const bool *has_place = arg;

	(void)is_error;
	HOLDS(text[0] != '\0');
	HOLDS(!*has_place || strncmp(text, "/f:", 3) == 0 || strncmp(text, "further", 7) == 0);
}

static void
check_text(const char *text, size_t size)
{
	HOLDS(memchr(text, '\0', size));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct agent_config config;
	static struct agent_policy policy;
	bool has_place = true;
	struct config_sink sink = { .problem = note_problem, .arg = &has_place };
	int r;

	config_defaults(&config, &policy, false);
	r = config_parse((const char *)data, size, "/f", &config, &policy, &sink);
	HOLDS((r == 0) == (sink.n_errors == 0));
	has_place = false;
	(void)config_check(&config, &policy, &sink);
	HOLDS(config.n_servers <= CONFIG_SERVERS_MAX && config.n_meta <= CONFIG_META_MAX);
	HOLDS(config.n_host_volumes <= CONFIG_VOLUMES_MAX &&
	      policy.n_chroot_env <= CONFIG_CHROOT_MAX);
	HOLDS(
	    policy.n_denied_uids <= CONFIG_RANGES_MAX && policy.n_denied_gids <= CONFIG_RANGES_MAX);
	for (uint32_t i = 0; i < config.n_host_volumes; i++) {
		check_text(config.host_volumes[i].name, sizeof config.host_volumes[i].name);
		check_text(config.host_volumes[i].path, sizeof config.host_volumes[i].path);
		HOLDS(config.host_volumes[i].path[0] == '/');
	}
	for (uint32_t i = 0; r == 0 && i < policy.n_chroot_env; i++)
		HOLDS(
		    policy.chroot_env[i].source[0] == '/' && policy.chroot_env[i].target[0] == '/');
	check_text(config.name, sizeof config.name);
	return 0;
}
