// SPDX-License-Identifier: Apache-2.0
/* net_list.c: lists the CNI plugins and networks of this machine. Runs in: a worker of
 * network-helper, as root. Asked by: supervisor. */
#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "common/clock.h"
#include "network-helper/net.h"

#define PLUGINS_MAX 128
#define LIST_MS     60000

/* A plugin that cannot be used, or does not end, is left out. */
static void
add_plugins(const char *path, json_t *plugins, uint64_t until_ms)
{
	cleanup_dir DIR *dir = opendir(path);
	struct dirent *entry;

	while (dir && (entry = readdir(dir)) && json_object_size(plugins) < PLUGINS_MAX) {
		struct err why = { 0 };
		char text[NET_MSG_SIZE];

		if (entry->d_name[0] != '.' && !json_object_get(plugins, entry->d_name) &&
		    clock_ms() < until_ms &&
		    net_plugin_describe("list", entry->d_name, text, &why) == 0)
			(void)json_object_set_new(plugins, entry->d_name, json_string(text));
	}
}

int
net_list(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	uint64_t until_ms = clock_ms() + LIST_MS;
	char dirs[CONFIG_PATH_SIZE], *rest = dirs, *dir;
	cleanup_json json_t *plugins = json_object(), *all = NULL;

	(void)strcpy(dirs, net_cni->path);
	while ((dir = strsep(&rest, ":")))
		add_plugins(dir, plugins, until_ms);
	all = json_pack("{s:O, s:o}", "plugins", plugins, "networks", net_config_names());
	return net_answer(all, ret, e);
}
