// SPDX-License-Identifier: Apache-2.0
/* leaks.c: compares what the helpers see below drover's roots with the rows of state.db. Runs in:
 * supervisor. */
#include "supervisor/alloc/leaks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/node/mounts.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/volumes.h"

#define LIST_MAX (64u * 1024 * 1024)

/* One question and all its answers. */
struct leaks {
	void (*done)(struct sup *sup, void *arg, json_t *list);
	void *arg;
	json_t *list;
	unsigned waiting;
};

struct asked {
	struct leaks *leaks;
	const struct place *place;
};

static void
report(struct leaks *k, const char *kind, const char *name, const char *detail)
{
	json_t *one = json_pack("{s:s, s:s, s:s}", "Kind", kind, "Name", name, "Detail", detail);

	/* A name that is no UTF-8 cannot be drover's, nor be said in JSON. */
	if (!one)
		one = json_pack(
		    "{s:s, s:s, s:s}", "Kind", kind, "Name", "(not printable)", "Detail", detail);
	(void)json_array_append_new(k->list, one);
}

/* --- what explains a name --- */

static bool
alloc_explains(struct sup *sup, const char *name)
{
	struct id id;

	return id_from_uuid(name, &id) && alloc_find(sup, &id);
}

/* Has any alloc a task that is this plugin ("node/hp", and what it keeps right below)? */
static bool
plugin_explains(struct sup *sup, const char *kind, size_t kind_len, const char *id, size_t id_len)
{
	alloc_foreach(sup, sa)
	{
		for (size_t i = 0; i < sa->group->tasks.n; i++) {
			const struct csi_plugin_block *block = sa->group->tasks.v[i].csi_plugin;

			if (block && strlen(str(block->id)) == id_len &&
			    memcmp(block->id, id, id_len) == 0 &&
			    strlen(csi_plugin_kind_names[block->type]) == kind_len &&
			    memcmp(csi_plugin_kind_names[block->type], kind, kind_len) == 0)
				return true;
		}
	}
	return false;
}

static bool
csi_explains(struct sup *sup, const char *path)
{
	const char *slash = strchr(path, '/'), *end;

	if (volume_path_is_known(sup, path))
		return true;
	if (!slash)
		return false;
	end = strchrnul(slash + 1, '/');
	/* Below its root the plugin's own are staging and per-alloc; what is in them belongs to
	 * volumes. */
	if (*end && strchr(end + 1, '/'))
		return false;
	return plugin_explains(
	    sup, path, (size_t)(slash - path), slash + 1, (size_t)(end - slash - 1));
}

/* `secrets` itself is what versions before this one mounted: it stays until the machine restarts.
 */
static bool
mount_explains(struct sup *sup, const char *path)
{
	char alloc[ID_UUID_SIZE];

	if (mount_is_secrets(path, alloc))
		return alloc_explains(sup, alloc);
	if (strcmp(path, "secrets") == 0 || strcmp(path, "alloc") == 0 || strcmp(path, "csi") == 0)
		return true;
	return strncmp(path, "csi/", 4) == 0 && csi_explains(sup, path + 4);
}

static const struct place {
	enum file_root root;
	const char *kind, *detail;
	bool (*explains)(struct sup *sup, const char *name);
} places[] = {
	{ FILE_ROOT_ALLOC, "alloc-dir", "a directory below alloc/ of no known allocation",
	    alloc_explains },
	{ FILE_ROOT_LOGS, "logs", "a directory below logs/ of no known allocation",
	    alloc_explains },
	{ FILE_ROOT_CSI_SOCK, "csi-socket", "a directory below csi/sock/ of no known allocation",
	    alloc_explains },
	{ FILE_ROOT_CSI, "csi-dir", "a directory below csi/ of no known plugin or volume",
	    csi_explains },
};

/* --- answers --- */

static void
finish_one(struct sup *sup, struct leaks *k)
{
	if (--k->waiting > 0)
		return;
	k->done(sup, k->arg, k->list);
	free(k);
}

static void
look_at_names(
    struct sup *sup, struct leaks *k, const struct place *place, const char *names, size_t len)
{
	/* Each name ends with a NUL, or the list is no list. */
	if (len > 0 && names[len - 1] != '\0') {
		report(k, "unknown", place->kind, "the helper's list does not end");
		return;
	}
	for (size_t at = 0; at < len; at += strlen(names + at) + 1) {
		if (!place->explains(sup, names + at))
			report(k, place->kind, names + at, place->detail);
	}
}

static bool
is_reported(const struct leaks *k, const char *name)
{
	json_t *one;
	size_t i;

	json_array_foreach (k->list, i, one)
		if (strcmp(json_string_value(json_object_get(one, "Name")), name) == 0)
			return true;
	return false;
}

/* What is named by an id and suffix in a directory, which is taken over. A run may be found in
 * several. */
static int
look_at_runs(struct sup *sup, struct leaks *k, int dir_fd, const char *suffix)
{
	cleanup_dir DIR *d = dir_fd < 0 ? NULL : fdopendir(dir_fd);
	struct dirent *entry;
	struct id id;

	if (!d) {
		int r = -errno;

		close_p(&dir_fd);
		return r;
	}
	while ((entry = readdir(d))) {
		char *name = entry->d_name;

		if (strlen(name) != ID_HEX_SIZE - 1 + strlen(suffix) ||
		    strcmp(name + ID_HEX_SIZE - 1, suffix) != 0)
			continue;
		name[ID_HEX_SIZE - 1] = '\0';
		if (id_from_hex(name, &id) && !run_is_known(sup, &id) && !is_reported(k, name))
			report(k, "run", name,
			    "a cgroup, socket or record of a run without a row in state.db");
	}
	return 0;
}

static void
look_at_files(struct sup *sup, struct leaks *k, int root_fd, const char *path, const char *suffix)
{
	int r =
	    look_at_runs(sup, k, openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), suffix);

	if (r < 0 && r != -ENOENT)
		report(k, "unknown", "run", strerror(-r));
}

static void
look_at_mounts(struct sup *sup, struct leaks *k)
{
	const char *path;
	int r = mounts_list(sup, &path);

	if (r < 0)
		report(k, "unknown", "mount", strerror(-r));
	for (; r >= 0 && *path; path += strlen(path) + 1)
		if (!mount_explains(sup, path))
			report(k, "mount", path,
			    "a mount below the data directory that nothing explains");
}

static void
look_at_tree(struct sup *sup, struct leaks *k, const char *root, const char *name)
{
	char path[sizeof((struct usage_roots *)0)->v2 + 16];

	(void)snprintf(path, sizeof path, "%s/%s", root, name);
	if (root[0])
		look_at_files(sup, k, AT_FDCWD, path, "");
}

/* In v2 a run with cores of its own has another directory. A v1 cgroup has a file called tasks. */
static void
look_at_cgroups(struct sup *sup, struct leaks *k)
{
	struct usage_roots roots = { 0 };
	const char *const v1[] = { roots.memory, roots.cpu, roots.pids, roots.cpuset,
		roots.systemd };
	int r = usage_roots_find("/proc/self/mounts", sup->args.cgroup, &roots);

	if (r < 0)
		report(k, "unknown", "run", strerror(-r));
	look_at_tree(sup, k, roots.v2, "tasks");
	look_at_tree(sup, k, roots.v2, "cores");
	for (size_t i = 0; i < ELEMENTSOF(v1); i++)
		look_at_tree(sup, k, v1[i], "runs");
}

static void
on_list(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_free struct asked *asked = arg;
	cleanup_close int memfd = fd;
	struct leaks *k = asked->leaks;
	const void *map = NULL;
	size_t len = 0;

	if (r >= 0)
		r = fd_memfd_map(memfd, LIST_MAX, &map, &len);
	if (r < 0)
		report(k, "unknown", asked->place->kind, e && e->msg[0] ? e->msg : strerror(-r));
	else
		look_at_names(sup, k, asked->place, map, len);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	finish_one(sup, k);
}

static struct asked *
ask(struct leaks *k, const struct place *place)
{
	struct asked *asked = calloc(1, sizeof *asked);

	if (!asked) {
		report(k, "unknown", place->kind, "no memory to look");
		return NULL;
	}
	*asked = (struct asked){ .leaks = k, .place = place };
	k->waiting++;
	return asked;
}

void
leaks_collect(struct sup *sup, void (*done)(struct sup *sup, void *arg, json_t *list), void *arg)
{
	struct leaks *k = calloc(1, sizeof *k);
	struct asked *asked;

	if (!k) {
		done(sup, arg, NULL);
		return;
	}
	*k = (struct leaks){ .done = done, .arg = arg, .list = json_array(), .waiting = 1 };
	look_at_cgroups(sup, k);
	look_at_files(sup, k, sup->sock_dir_fd, ".", ".sock");
	look_at_files(sup, k, sup->run_dir_fd, ".", ".rec");
	look_at_mounts(sup, k);
	for (size_t i = 0; i < ELEMENTSOF(places); i++) {
		struct file_root_list_req names = { 0 };

		names.root = places[i].root;
		asked = ask(k, &places[i]);
		if (asked)
			(void)file_call_root_list(sup, &names, on_list, asked);
	}
	finish_one(sup, k);
}
