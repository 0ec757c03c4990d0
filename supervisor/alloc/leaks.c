// SPDX-License-Identifier: Apache-2.0
/* leaks.c: compares the directories, mounts and runs on this machine with the rows of state.db.
 * Runs in: supervisor. */
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
#include "common/mem.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_hooks.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/container.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/health/probe_tasks.h"
#include "supervisor/image/images.h"
#include "supervisor/node/mounts.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/volume/plugin_dirs.h"
#include "supervisor/volume/volumes.h"

#define LIST_MAX (64u * 1024 * 1024) /* bytes of names from file-helper */

/* One collection. */
struct leaks {
	void (*done)(struct sup *sup, void *arg, json_t *list);
	void *arg;
	json_t *list;
	unsigned waiting; /* requests to helpers, and leaks_collect() itself */
};

/* A request to file-helper for the names in one directory. */
struct listing {
	struct leaks *leaks;
	const struct place *place;
};

static void
add_leak(struct leaks *k, const char *kind, const char *name, const char *detail)
{
	json_t *one = json_pack("{s:s, s:s, s:s}", "Kind", kind, "Name", name, "Detail", detail);

	/* JSON cannot have a name that is not UTF-8. drover makes no such name. */
	if (!one)
		one = json_pack(
		    "{s:s, s:s, s:s}", "Kind", kind, "Name", "(not printable)", "Detail", detail);
	(void)json_array_append_new(k->list, one);
}

/* --- rows that explain a name --- */

static bool
alloc_explains(struct sup *sup, const char *name)
{
	struct id id;

	return id_from_uuid(name, &id) && (alloc_find(sup, &id) || probe_task_is_known(sup, &id));
}

/* The socket's directory of a plugin's task is removed when the task ends, not with its alloc. */
static bool
socket_explains(struct sup *sup, const char *name)
{
	struct sup_alloc *sa;
	struct id id;

	if (!id_from_uuid(name, &id) || !(sa = alloc_find(sup, &id)) ||
	    alloc_client_terminal(&sa->a))
		return false;
	for (size_t i = 0; i < sa->group->tasks.n; i++)
		if (sa->group->tasks.v[i].csi_plugin)
			return true;
	return false;
}

/* Returns true if this plugin's root is wanted. It is "node/hp", of kind and id. */
static bool
plugin_explains(struct sup *sup, const char *kind, size_t kind_len, const char *id, size_t id_len)
{
	cleanup_free char *plugin = mem_printf("%.*s", (int)id_len, id);

	for (int k = CSI_PLUGIN_CONTROLLER; k <= CSI_PLUGIN_MONOLITH; k++)
		if (strlen(csi_plugin_kind_names[k]) == kind_len &&
		    memcmp(csi_plugin_kind_names[k], kind, kind_len) == 0)
			return plugin_root_is_wanted(sup, (enum csi_plugin_kind)k, plugin, NULL);
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
	/* The root of a plugin has the directories staging and per-alloc; their contents belong to
	 * volumes. */
	if (*end && strchr(end + 1, '/'))
		return false;
	return plugin_explains(
	    sup, path, (size_t)(slash - path), slash + 1, (size_t)(end - slash - 1));
}

/* The agent mounts `alloc` and `csi`. Earlier versions mounted `secrets`, which stays until the
 * machine restarts. */
static bool
mount_explains(struct sup *sup, const char *path)
{
	/* -dev: network namespaces; check_networks() looks at their names. */
	if (strncmp(path, "rt/netns/", strlen("rt/netns/")) == 0)
		return true;
	if (strcmp(path, "secrets") == 0 || strcmp(path, "alloc") == 0 || strcmp(path, "csi") == 0)
		return true;
	return strncmp(path, "csi/", 4) == 0 && csi_explains(sup, path + 4);
}

/* The secrets of a task are removed when it has ended and its last run is reaped. */
static bool
secrets_explained(struct sup *sup, const struct id *alloc, const char *task)
{
	const struct sup_alloc *sa = alloc_find(sup, alloc);
	const struct task_runner *tr = sa ? alloc_find_task(sa, task) : NULL;

	return probe_task_is_known(sup, alloc) || run_is_left(sup, alloc, task) ||
	       (tr && (tr->phase != TASK_DEAD || task_hooks_delay_start(tr)));
}

static void
check_secrets(
    struct sup *sup, struct leaks *k, const struct id *alloc, const char *task, size_t len)
{
	cleanup_free char *name = NULL, *task_name = mem_printf("%.*s", (int)len, task);
	char id[ID_UUID_SIZE];

	if (secrets_explained(sup, alloc, task_name))
		return;
	id_to_uuid(alloc, id);
	name = mem_printf("%s/%s", id, task_name);
	add_leak(k, "secrets", name, "the secrets of a task that has ended");
}

static const struct place {
	enum file_root root;
	const char *kind, *detail;
	bool (*explains)(struct sup *sup, const char *name);
} places[] = {
	{ FILE_ROOT_ALLOC, "alloc-dir", "a directory below alloc/ of an unknown allocation",
	    alloc_explains },
	{ FILE_ROOT_LOGS, "logs", "a directory below logs/ of an unknown allocation",
	    alloc_explains },
	{ FILE_ROOT_CSI_SOCK, "csi-socket", "a directory below csi/sock/ without a plugin's task",
	    socket_explains },
	{ FILE_ROOT_CSI, "csi-dir", "a directory below csi/ of an unknown plugin or volume",
	    csi_explains },
};

/* --- names that are found --- */

static void
end_listing(struct sup *sup, struct leaks *k)
{
	if (--k->waiting > 0)
		return;
	k->done(sup, k->arg, k->list);
	free(k);
}

/* names: each ends with a NUL. */
static void
check_names(
    struct sup *sup, struct leaks *k, const struct place *place, const char *names, size_t len)
{
	if (len > 0 && names[len - 1] != '\0') {
		add_leak(k, "unknown", place->kind, "the list of file-helper is truncated");
		return;
	}
	for (size_t at = 0; at < len; at += strlen(names + at) + 1) {
		if (!place->explains(sup, names + at))
			add_leak(k, place->kind, names + at, place->detail);
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

/* Checks the files whose names are an id and suffix, in a directory that this closes. A run may
 * have files in several directories. */
static int
check_runs(struct sup *sup, struct leaks *k, int dir_fd, const char *suffix)
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
			add_leak(k, "run", name,
			    "a cgroup, socket or record of a run without a row in state.db");
	}
	return 0;
}

static void
check_run_files(struct sup *sup, struct leaks *k, int root_fd, const char *path, const char *suffix)
{
	int r =
	    check_runs(sup, k, openat(root_fd, path, O_RDONLY | O_DIRECTORY | O_CLOEXEC), suffix);

	if (r < 0 && r != -ENOENT)
		add_leak(k, "unknown", "run", strerror(-r));
}

/* Finds the alloc whose group, or a container of it, has this network. */
static const struct sup_alloc *
find_network(struct sup *sup, const struct id *id)
{
	const struct sup_alloc *sa = alloc_find(sup, id);

	if (sa)
		return sa;
	alloc_foreach(sup, other) for (size_t i = 0; i < other->group->tasks.n; i++)
	{
		const struct task *task = &other->group->tasks.v[i];
		struct id of_task;

		if (!container_has_network(other->group, task))
			continue;
		of_task = container_network_id(&other->id, task->name);
		if (id_equal(id, &of_task))
			return other;
	}
	return NULL;
}

/* The networks of an alloc that has ended are removed before it is in ALLOC_DONE, unless that
 * failed. */
static const char *
explain_network(struct sup *sup, const struct id *id)
{
	const struct sup_alloc *sa = find_network(sup, id);

	if (!sa)
		return "the network of an unknown allocation";
	return sa->runner && sa->runner->phase == ALLOC_DONE
		   ? "the network of an allocation that has ended"
		   : NULL;
}

/* A network has two names: its id, and that with a suffix. */
static void
check_networks(struct sup *sup, struct leaks *k)
{
	cleanup_free char *path = mem_printf("%s/netns", sup->args.runtime_dir);
	cleanup_dir DIR *d = opendir(path);
	struct dirent *entry;
	struct id id;

	if (!d)
		add_leak(k, "unknown", "network", strerror(errno));
	while (d && (entry = readdir(d))) {
		const char *detail;

		entry->d_name[strcspn(entry->d_name, ".")] = '\0';
		if (id_from_uuid(entry->d_name, &id) && (detail = explain_network(sup, &id)) &&
		    !is_reported(k, entry->d_name))
			add_leak(k, "network", entry->d_name, detail);
	}
}

static void
on_unmounted(void *arg, const char *path)
{
	add_leak(arg, "volume", path, "a published volume that is not mounted any more");
}

static void
check_mounts(struct sup *sup, struct leaks *k)
{
	const char *path, *task;
	int r = mounts_list(sup, &path);
	struct id alloc;
	size_t len;

	if (r < 0)
		add_leak(k, "unknown", "mount", strerror(-r));
	for (; r >= 0 && *path; path += strlen(path) + 1)
		if (mount_is_secrets(path, &alloc, &task, &len))
			check_secrets(sup, k, &alloc, task, len);
		else if (!mount_explains(sup, path))
			add_leak(k, "mount", path, "an unknown mount below the data directory");
	r = volume_unmounted_each(sup, on_unmounted, k);
	if (r < 0)
		add_leak(k, "unknown", "volume", strerror(-r));
}

static void
check_run_cgroups(struct sup *sup, struct leaks *k, const char *root, const char *name)
{
	char path[sizeof((struct usage_roots *)0)->v2 + 16];

	(void)snprintf(path, sizeof path, "%s/%s", root, name);
	if (root[0])
		check_run_files(sup, k, AT_FDCWD, path, "");
}

/* In cgroup v2 a run with reserved cores is below `cores` instead of `tasks`. In v1 all are below
 * `runs`, because each cgroup has a file `tasks`. */
static void
check_cgroups(struct sup *sup, struct leaks *k)
{
	struct usage_roots roots = { 0 };
	const char *const v1[] = { roots.memory, roots.cpu, roots.pids, roots.cpuset,
		roots.systemd };
	int r = usage_roots_find("/proc/self/mounts", sup->args.cgroup, &roots);

	if (r < 0)
		add_leak(k, "unknown", "run", strerror(-r));
	check_run_cgroups(sup, k, roots.v2, "tasks");
	check_run_cgroups(sup, k, roots.v2, "cores");
	for (size_t i = 0; i < ELEMENTSOF(v1); i++)
		check_run_cgroups(sup, k, v1[i], "runs");
}

static void
on_list(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_free struct listing *listing = arg;
	cleanup_close int memfd = fd;
	struct leaks *k = listing->leaks;
	const void *map = NULL;
	size_t len = 0;

	if (r >= 0)
		r = fd_memfd_map(memfd, LIST_MAX, &map, &len);
	if (r < 0)
		add_leak(
		    k, "unknown", listing->place->kind, e && e->msg[0] ? e->msg : strerror(-r));
	else
		check_names(sup, k, listing->place, map, len);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	end_listing(sup, k);
}

static void
request_listing(struct sup *sup, struct leaks *k, const struct place *place)
{
	struct file_root_list_req req = { 0 };
	struct listing *listing = mem_new(struct listing);

	*listing = (struct listing){ .leaks = k, .place = place };
	req.root = place->root;
	k->waiting++;
	(void)file_call_root_list(sup, &req, on_list, listing);
}

static void
on_unknown_layer(void *arg, const char *digits)
{
	add_leak(arg, "layer", digits, "a layer below images/layers/ that no image has");
}

static void
on_layers(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_close int list = fd;
	struct leaks *k = arg;
	struct err why = { 0 };

	if (r < 0)
		(void)err_say(&why, r, "%s", e && e->msg[0] ? e->msg : strerror(-r));
	else
		r = layers_each_unknown(sup, list, on_unknown_layer, k, &why);
	if (r < 0)
		add_leak(k, "unknown", "layer", why.msg);
	end_listing(sup, k);
}

/* Where there was never a pull, the image-unpacker is not started. */
static void
request_layers(struct sup *sup, struct leaks *k)
{
	if (!images_are_used(sup))
		return;
	k->waiting++;
	(void)queue_ask(sup, QUEUE_LAYERS, &(struct unp_layer_list_req){}, -1, on_layers, k);
}

void
leaks_collect(struct sup *sup, void (*done)(struct sup *sup, void *arg, json_t *list), void *arg)
{
	struct leaks *k = mem_new(struct leaks);

	*k = (struct leaks){ .done = done, .arg = arg, .list = json_array(), .waiting = 1 };
	check_cgroups(sup, k);
	check_run_files(sup, k, sup->sock_dir_fd, ".", ".sock");
	check_run_files(sup, k, sup->run_dir_fd, ".", ".rec");
	check_mounts(sup, k);
	check_networks(sup, k);
	for (size_t i = 0; i < ELEMENTSOF(places); i++)
		request_listing(sup, k, &places[i]);
	request_layers(sup, k);
	end_listing(sup, k);
}
