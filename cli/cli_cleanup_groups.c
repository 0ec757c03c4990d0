// SPDX-License-Identifier: Apache-2.0
/*
 * cli_cleanup_groups.c: drover cleanup: the cgroups that agents left. A running agent holds a lock
 * on its cgroup, also one in another mount or pid namespace. Runs in: cli, as root.
 */
#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "cli/cli_cleanup.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/path.h"

#define PREFIX "drover-"
#define ID_LEN 8
#define DEPTH_MAX                                                                                  \
	3 /* "/drover-ID", "/drover.slice/drover-tasks.service/ID", or a cgroup_parent             \
	   */
#define WAIT_MS 3000
#define REC_LEN 37 /* "/" 32 hexadecimal digits ".rec" */
#define GONE    " (deleted)"

/* Returns the id in the name of an agent's cgroup, or NULL. */
static const char *
id_in(const char *name)
{
	const char *id = strncmp(name, PREFIX, strlen(PREFIX)) == 0 ? name + strlen(PREFIX) : name;

	return strspn(id, "0123456789abcdef") == ID_LEN && !id[ID_LEN] ? id : NULL;
}

/* If link is that of an executor's record, returns the data directory; else NULL. */
static char *
data_of_record(char *link, bool *ret_gone)
{
	size_t len = strlen(link), tail = strlen("/run") + REC_LEN;

	*ret_gone = len > strlen(GONE) && strcmp(link + len - strlen(GONE), GONE) == 0;
	if (*ret_gone)
		link[len -= strlen(GONE)] = '\0';
	if (len <= tail || strcmp(link + len - 4, ".rec") != 0 ||
	    strncmp(link + len - tail, "/run/", 5) != 0)
		return NULL;
	link[len - tail] = '\0';
	return link;
}

/* Finds out by the record that the executor has open where its agent's data is. */
static void
find_data(struct cleanup_group *g, pid_t pid)
{
	char path[64], link[PATH_MAX];
	cleanup_dir DIR *d = NULL;
	const char *name;
	bool gone;

	(void)snprintf(path, sizeof path, "/proc/%d/fd", (int)pid);
	d = opendir(path);
	while (d && !g->data && (name = dir_next(d))) {
		ssize_t n = readlinkat(dirfd(d), name, link, sizeof link - 1);
		cleanup_free char *instance = NULL;

		link[n > 0 ? n : 0] = '\0';
		if (!data_of_record(link, &gone))
			continue;
		g->data = mem_strdup(link);
		instance = mem_printf("%s/instance", link);
		g->is_gone = gone && access(instance, F_OK) < 0 && errno == ENOENT;
	}
}

static void
look_at_executors(struct cleanup_group *g, int exec_fd)
{
	cleanup_free char *text = NULL;

	if (fd_read_file(exec_fd, "cgroup.procs", 1 << 20, &text) <= 0)
		return;
	for (char *at = text, *line; !g->data && (line = strsep(&at, "\n")) && *line;)
		find_data(g, (pid_t)strtol(line, NULL, 10));
}

/* An agent that starts while this command has the lock ends with a sentence, and can be started
 * again. */
static void
take_lock(struct cleanup_group *g, int tasks_fd)
{
	g->lock_fd = openat(tasks_fd, CGROUP_LOCK, O_WRONLY | O_CLOEXEC);
	if (g->lock_fd >= 0 && flock(g->lock_fd, LOCK_EX | LOCK_NB) < 0)
		g->in_use = true;
}

static void
look_at_group(struct cleanup_group *g, int dir)
{
	struct err e = { 0 };
	struct cgroup c;

	if (cgroup_open(&c, g->parent, false, &e) == 0) {
		take_lock(g, c.tasks[CGROUP_V2]);
		g->populated = cgroup_is_populated(c.exec[CGROUP_V2]) > 0 ||
			       cgroup_is_populated(c.tasks[CGROUP_V2]) > 0 ||
			       ((c.in_v2 & CGROUP_BIT(CGROUP_CPUSET)) &&
				   cgroup_is_populated(c.tasks[CGROUP_CPUSET]) > 0);
		if (g->populated && !g->in_use)
			look_at_executors(g, c.exec[CGROUP_V2]);
	} else { /* a part of it was removed already */
		g->populated = cgroup_is_populated(dir) > 0;
	}
	cgroup_close(&c);
}

static void
add_group(struct cleanup *c, const char *parent, const char *id, int dir)
{
	struct cleanup_group *g;

	SLIST_FOREACH (g, &c->groups, link)
		if (strcmp(g->parent, parent) == 0)
			return;
	g = mem_new(struct cleanup_group);
	g->parent = mem_strdup(parent);
	memcpy(g->id, id, ID_LEN);
	g->lock_fd = -1;
	look_at_group(g, dir);
	SLIST_INSERT_HEAD(&c->groups, g, link);
	c->runs |= g->in_use;
}

static void
walk_tree(struct cleanup *c, int up, const char *path, unsigned depth)
{
	cleanup_dir DIR *d = NULL;
	const char *name, *id;

	if (dir_open_at(up, ".", &d) < 0)
		return;
	while ((name = dir_next(d))) {
		cleanup_close int dir =
		    openat(dirfd(d), name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
		cleanup_free char *below = NULL;

		if (dir < 0)
			continue;
		below = mem_printf("%s/%s", path, name);
		id = id_in(name);
		if (id && (id != name || faccessat(dir, "exec", F_OK, 0) == 0))
			add_group(c, below, id, dir);
		else if (depth < DEPTH_MAX)
			walk_tree(c, dir, below, depth + 1);
	}
}

int
cleanup_groups_find(struct cleanup *c, struct err *e)
{
	cleanup_done(strings) struct strings trees = { 0 };
	int r = cleanup_mounts("cgroup", &trees, e);

	for (size_t i = 0; r == 0 && i < trees.n; i++) {
		cleanup_close int root = open(trees.v[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC);

		if (root >= 0)
			walk_tree(c, root, "", 1);
	}
	return r;
}

struct cleanup_group *
cleanup_group_of(struct cleanup *c, const char *id)
{
	struct cleanup_group *g;

	SLIST_FOREACH (g, &c->groups, link)
		if (strcmp(g->id, id) == 0)
			return g;
	return NULL;
}

void
cleanup_groups_remove(struct cleanup *c)
{
	struct cleanup_group *g;

	SLIST_FOREACH (g, &c->groups, link) {
		struct err e = { 0 };
		int r;

		if (g->in_use)
			continue;
		if (g->populated && !g->is_gone && !c->kills) {
			cleanup_say(c, "cgroup", g->parent, "kept",
			    "tasks run%s%s: start their agent, or add -kill",
			    g->data ? ", of " : "", g->data ?: "");
			c->runs = true;
			continue;
		}
		r = c->dry_run ? 0 : cgroup_remove(g->parent, WAIT_MS, &e);
		g->populated &= r < 0;
		cleanup_did(c, "cgroup", g->parent, r, &e);
	}
}

void
cleanup_groups_done(struct cleanup *c)
{
	struct cleanup_group *g;

	while ((g = SLIST_FIRST(&c->groups))) {
		SLIST_REMOVE_HEAD(&c->groups, link);
		close_p(&g->lock_fd);
		free(g->parent);
		free(g->data);
		free(g);
	}
}
