// SPDX-License-Identifier: Apache-2.0
/* task_path.c: paths of a job's files in the directories of its alloc. Runs in: supervisor. */
#include "supervisor/alloc/task_path.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/service/task_env.h"

/* Adds the parts of path to the parts in ret. */
static bool
add_parts(char ret[TASK_PATH_SIZE], const char *path)
{
	for (; *path; path += strspn(path, "/")) {
		int len = (int)strcspn(path, "/");
		size_t n = strlen(ret);
		char *slash;

		if (len == 2 && strncmp(path, "..", 2) == 0) {
			if (n == 0)
				return false;
			slash = strrchr(ret, '/');
			*(slash ? slash : ret) = '\0';
		} else if (len > 0 && (len != 1 || *path != '.')) {
			if (n + (size_t)len + 2 > TASK_PATH_SIZE)
				return false;
			(void)sprintf(ret + n, "%s%.*s", n > 0 ? "/" : "", len, path);
		}
		path += len;
	}
	return true;
}

bool
task_path_begins(const char *path, const char *word, const char **ret_rest)
{
	size_t len = strlen(word);

	if (strncmp(path, word, len) != 0 || (path[len] != '/' && path[len]))
		return false;
	*ret_rest = path + len + (path[len] == '/');
	return true;
}

/* NOMAD_ALLOC_DIR is /alloc, and "/" is the task's directory. */
static int
expand(const struct task_runner *tr, const char *path, char **ret, struct err *e)
{
	struct task_env env = { 0 };
	int r = task_env_make(tr->ar->sup, tr->ar->sa, tr->task, true, &env);

	if (r < 0)
		return err_set(e, r, "make the environment of task %s", tr->task->name);
	r = task_env_expand(&env, path, false, ret, e);
	task_env_done(&env);
	return r;
}

/* NOMAD_TASK_DIR of a raw_exec task is a path of the host. Returns what follows the directory of
 * the alloc, or NULL. */
static const char *
strip_alloc(const struct task_runner *tr, const char *path)
{
	const char *data = tr->ar->sup->args.data_dir;
	size_t len = strlen(data);
	const char *rest, *below;

	if (strncmp(path, data, len) != 0 || !task_path_begins(path + len, "/alloc", &rest) ||
	    !task_path_begins(rest, tr->ar->sa->a.id, &below))
		return NULL;
	return below;
}

int
task_path_make(
    const struct task_runner *tr, const char *path, char ret[TASK_PATH_SIZE], struct err *e)
{
	cleanup_free char *expanded = NULL;
	const char *rest, *below, *below_alloc;
	int r = expand(tr, path, &expanded, e);

	if (r < 0)
		return r;
	below_alloc = strip_alloc(tr, expanded);
	(void)strcpy(ret, below_alloc ? "" : tr->task->name);
	if (!add_parts(ret, below_alloc ? below_alloc : expanded))
		return -EXDEV;
	if (task_path_begins(ret, "alloc", &rest))
		return 0;
	if (!task_path_begins(ret, tr->task->name, &rest))
		return -EPERM;
	if (task_path_begins(rest, "alloc", &below))
		memmove(ret, rest, strlen(rest) + 1);
	return 0;
}
