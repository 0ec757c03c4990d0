// SPDX-License-Identifier: Apache-2.0
/* net_find.c: finds CNI plugins in the directories of cni_path, and checks that only root can
 * change them. Runs in: a worker of network-helper, as root. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/path.h"
#include "network-helper/net.h"

/* Writes the directories that exist. A plugin looks for others only in these, so one that a user
 * makes after this check is never used. */
static int
check_dirs(char ret_dirs[CONFIG_PATH_SIZE], struct err *e)
{
	char dirs[CONFIG_PATH_SIZE], *rest = dirs, *dir, *end = ret_dirs;
	struct err why = { 0 };

	(void)strcpy(dirs, net_cni->path);
	*end = '\0';
	while ((dir = strsep(&rest, ":"))) {
		cleanup_close int fd = path_open_owned(dir, 0, &why);

		if (fd < 0 && fd != -ENOENT)
			return err_say(e, fd, "cni_path: %s", why.msg);
		if (fd >= 0)
			end = stpcpy(stpcpy(end, end > ret_dirs ? ":" : ""), dir);
	}
	return 0;
}

/* Opens the first program of this name, and checks those in the other directories too: what a
 * plugin passes over, such as a directory, is its own decision. */
static int
open_program(const char *dirs_checked, const char *type, struct err *e)
{
	char dirs[CONFIG_PATH_SIZE], path[2 * CONFIG_PATH_SIZE], *dir;
	char *rest = *dirs_checked ? dirs : NULL; /* no directory, not the one with no name */
	cleanup_close int found = -1;
	struct err why = { 0 };

	if (!name_is_component(type))
		return err_say(e, -EINVAL, "\"%.64s\" is not the name of a CNI plugin", type);
	(void)strcpy(dirs, dirs_checked);
	while ((dir = strsep(&rest, ":"))) {
		int fd;

		(void)snprintf(path, sizeof path, "%s/%s", dir, type);
		fd = path_open_owned(path, 0, &why);
		if (fd < 0 && fd != -ENOENT)
			return err_say(e, fd, "CNI plugin %s: %s", type, why.msg);
		if (found < 0)
			found = fd;
		else if (fd >= 0)
			(void)close(fd);
	}
	if (found < 0)
		return err_say(e, -ENOENT,
		    "CNI plugin \"%s\" is not in %s: install containernetworking-plugins, or set "
		    "cni_path",
		    type, net_cni->path);
	return steal_fd(&found);
}

/* Checks each plugin that a configuration names at any depth. Those of "ipam" must exist; another
 * "type" may name something else. */
static int
check_called(const json_t *at, bool needed, const char *dirs, struct err *e)
{
	struct err why = { 0 };
	const char *key;
	json_t *value;
	size_t i;
	int r;

	json_array_foreach (at, i, value)
		if ((r = check_called(value, needed, dirs, e)) < 0)
			return r;
	json_object_foreach ((json_t *)(uintptr_t)at, key, value) {
		const char *type = strcmp(key, "type") == 0 ? json_string_value(value) : NULL;
		cleanup_close int fd = type && *type ? open_program(dirs, type, &why) : -1;

		if (type && *type && fd < 0 && (needed || (fd != -ENOENT && fd != -EINVAL)))
			return err_say(e, fd, "%s", why.msg);
		if ((r = check_called(value, strcmp(key, "ipam") == 0, dirs, e)) < 0)
			return r;
	}
	return 0;
}

int
net_plugin_find(const json_t *config, char ret_dirs[CONFIG_PATH_SIZE], struct err *e)
{
	int r = check_dirs(ret_dirs, e);

	if (r == 0)
		r = check_called(config, true, ret_dirs, e);
	return r < 0 ? r
		     : open_program(
			   ret_dirs, json_string_value(json_object_get(config, "type")) ?: "", e);
}
