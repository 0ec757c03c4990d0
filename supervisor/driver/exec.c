// SPDX-License-Identifier: Apache-2.0
/* exec.c: a task with a root, namespaces and a filter of its own (semantics.md 10.3). Runs in:
 * supervisor. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "common/cap_name.h"
#include "common/privs.h"
#include "supervisor/driver/driver.h"

static const char *const known[] = { "command", "args", "pid_mode", "ipc_mode", "cap_add",
	"cap_drop", NULL };

/* What is not known yet may be anything. */
static bool
is_open(const char *word, bool evaluated)
{
	return !evaluated && word && strstr(word, "${");
}

/* *ret stays the node's default where the task says nothing. */
static int
read_mode(const struct task *task, const char *key, bool evaluated, ExecNsMode *ret, struct err *e)
{
	json_t *value = json_object_get(task->config, key);
	const char *mode = value ? json_string_value(value) : "";

	if (is_open(mode, evaluated) || (mode && *mode == '\0'))
		return 0;
	if (mode && strcmp(mode, "private") == 0)
		*ret = EXEC_NS_MODE__EXEC_NS_PRIVATE;
	else if (mode && strcmp(mode, "host") == 0)
		*ret = EXEC_NS_MODE__EXEC_NS_HOST;
	else
		return err_say(e, -EINVAL, "task %s: config.%s must be \"private\" or \"host\"",
		    task->name, key);
	return 0;
}

static int
read_caps(const struct task *task, const char *key, bool evaluated, uint64_t *ret, struct err *e)
{
	json_t *list = json_object_get(task->config, key), *item;
	uint64_t mask = 0;
	size_t i;

	if (list && !json_is_array(list))
		return err_say(e, -EINVAL, "task %s: config.%s must be a list of capability names",
		    task->name, key);
	json_array_foreach (list, i, item) {
		const char *name = json_string_value(item);
		int cap = name ? cap_number(name) : -1;

		if (name && strcasecmp(name, "all") == 0)
			mask |= privs_all_caps();
		else if (is_open(name, evaluated))
			continue;
		else if (cap < 0)
			return err_say(e, -EINVAL,
			    "task %s: config.%s[%zu]: there is no capability \"%s\"", task->name,
			    key, i, name ? name : "?");
		else
			mask |= 1ull << cap;
	}
	*ret = mask;
	return 0;
}

static int
read_config(const struct task *task, bool evaluated, ExecTaskStartReq *req, struct err *e)
{
	uint64_t add, drop;
	int r;

	if ((r = read_mode(task, "pid_mode", evaluated, &req->pid_mode, e)) < 0 ||
	    (r = read_mode(task, "ipc_mode", evaluated, &req->ipc_mode, e)) < 0 ||
	    (r = read_caps(task, "cap_add", evaluated, &add, e)) < 0 ||
	    (r = read_caps(task, "cap_drop", evaluated, &drop, e)) < 0)
		return r;
	req->cap_add = add;
	req->cap_drop = drop;
	return 0;
}

static int
check(const struct task *task, bool evaluated, struct err *e)
{
	ExecTaskStartReq unused = EXEC_TASK_START_REQ__INIT;
	int r = driver_check_command(task, known, e);

	return r < 0 ? r : read_config(task, evaluated, &unused, e);
}

static int
fill(const struct task *task, ExecTaskStartReq *req, struct spec_writer *spec, struct err *e)
{
	driver_fill_command(task, spec);
	return read_config(task, true, req, e);
}

const struct driver_ops driver_exec = {
	.name = "exec",
	.id = DRIVER_EXEC,
	.isolates_files = true,
	.mounts = true,
	.check = check,
	.fill = fill,
};
