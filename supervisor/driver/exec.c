// SPDX-License-Identifier: Apache-2.0
/* exec.c: the driver exec, whose tasks have a root, namespaces and a filter of their own. Runs in:
 * supervisor. */
#include <errno.h>
#include <linux/capability.h>
#include <string.h>
#include <strings.h>

#include "common/cap_name.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "common/privs.h"
#include "supervisor/driver/driver.h"

static const char *const known[] = { "command", "args", "work_dir", "pid_mode", "ipc_mode",
	"cap_add", "cap_drop", NULL };

/* Leaves *ret unchanged, at the node's default, if the task does not set the mode. */
static int
read_mode(
    const struct task *task, const char *key, bool evaluated, enum exec_ns_mode *ret, struct err *e)
{
	json_t *value = driver_config_get(task, key);
	const char *mode = value ? json_string_value(value) : "";

	if (driver_value_is_open(value, evaluated) || (mode && *mode == '\0'))
		return 0;
	if (mode && strcmp(mode, "private") == 0)
		*ret = EXEC_NS_PRIVATE;
	else if (mode && strcmp(mode, "host") == 0)
		*ret = EXEC_NS_HOST;
	else
		return err_say(e, -EINVAL, "task %s: config.%s must be \"private\" or \"host\"",
		    task->name, key);
	return 0;
}

static int
read_caps(const struct task *task, const char *key, bool evaluated, uint64_t *ret, struct err *e)
{
	json_t *list = driver_config_get(task, key), *item;
	uint64_t mask = 0;
	size_t i;

	if (list && !driver_value_is_open(list, evaluated) && !json_is_array(list))
		return err_say(e, -EINVAL, "task %s: config.%s must be a list of capability names",
		    task->name, key);
	json_array_foreach (list, i, item) {
		const char *name = json_string_value(item);
		int cap = name ? cap_number(name) : -1;

		if (name && strcasecmp(name, "all") == 0)
			mask |= privs_all_caps();
		else if (driver_value_is_open(item, evaluated))
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
read_config(const struct task *task, bool evaluated, struct exec_start *req, struct err *e)
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

/* exec-helper checks the same; here the error has names and comes when the job is registered. */
static int
check_allowed(const struct agent_config *config, const struct task *task,
    const struct exec_start *req, struct err *e)
{
	bool pid_host = req->pid_mode == EXEC_NS_HOST;
	bool ipc_host = req->ipc_mode == EXEC_NS_HOST;
	const char *refused = pid_host && !config->allow_host_pid   ? "pid"
			      : ipc_host && !config->allow_host_ipc ? "ipc"
								    : NULL;
	char names[256];

	if (refused)
		return err_say(e, -EINVAL,
		    "task %s: config.%s_mode \"host\" is not allowed on this node: plugin \"exec\" "
		    "{ config { allow_host_%s = true } } in the agent's configuration allows it, "
		    "and %s anyone who may submit a job",
		    task->name, refused, refused,
		    refused[0] == 'p' ? "gives root to" : "opens the host's shared memory to");
	if ((pid_host || ipc_host) && req->cap_add)
		return err_say(e, -EINVAL,
		    "task %s: config.cap_add must be empty: a task whose pid_mode or ipc_mode is "
		    "\"host\" has no capability",
		    task->name);
	if ((req->cap_add & ~config->allow_caps) == 0)
		return 0;
	cap_names(req->cap_add & ~config->allow_caps, names, sizeof names);
	return err_say(e, -EINVAL,
	    "driver does not allow the following capabilities: %s (task %s); allow_caps in plugin "
	    "\"exec\" { config { } } of the agent's configuration lists those that a job may add",
	    names, task->name);
}

/* Refuses node and monolith plugins without SYS_ADMIN: they could not mount. */
static int
check_plugin(const struct agent_config *config, const struct task *task, bool evaluated,
    uint64_t cap_add, struct err *e)
{
	if (!task->csi_plugin || (task->csi_plugin->type != CSI_PLUGIN_NODE &&
				     task->csi_plugin->type != CSI_PLUGIN_MONOLITH))
		return 0;
	if (!(config->allow_caps & CAP_BIT(SYS_ADMIN)))
		return err_say(e, -EINVAL,
		    "task %s: a csi_plugin task of type node or monolith has to mount: under exec "
		    "that needs \"sys_admin\" in the agent's allow_caps, which gives root to "
		    "anyone who may submit such a job; or run it with raw_exec",
		    task->name);
	if (evaluated && !(cap_add & CAP_BIT(SYS_ADMIN)))
		return err_say(e, -EINVAL,
		    "task %s: a csi_plugin task of type node or monolith has to mount: under exec "
		    "it needs cap_add = [\"sys_admin\"]; or run it with raw_exec",
		    task->name);
	return 0;
}

static int
check_config(
    const struct agent_config *config, const struct task *task, bool evaluated, struct err *e)
{
	struct exec_start req = { 0 };
	int r = driver_check_command(task, known, evaluated, e);

	if (config->default_pid_host)
		req.pid_mode = EXEC_NS_HOST;
	if (config->default_ipc_host)
		req.ipc_mode = EXEC_NS_HOST;
	if (r < 0 || (r = read_config(task, evaluated, &req, e)) < 0 ||
	    (r = check_plugin(config, task, evaluated, req.cap_add, e)) < 0)
		return r;
	return check_allowed(config, task, &req, e);
}

/* The task sees the machine's /etc, so it needs a file of its own only if it is to see another. */
static void
fill_resolv_conf(const struct task_net *net, struct exec_start *req, struct spec_writer *spec)
{
	cleanup_free char *text = NULL, *option = NULL;
	bool own_network = !id_is_zero(&req->network), same;

	if (!net->has_dns && !own_network)
		return;
	text = resolv_conf_make(&net->dns, own_network, &same);
	if (!text || same)
		return;
	option = mem_printf("etc=resolv.conf:%s", text);
	req->own_resolv_conf = true;
	spec_add_str(spec, SPEC_OPTION, option);
}

static int
fill_start(const struct agent_config *config, const struct task *task, const json_t *image,
    const struct task_net *net, struct exec_start *req, struct spec_writer *spec, struct err *e)
{
	driver_fill_command(task, spec);
	fill_resolv_conf(net, req, spec);
	return read_config(task, true, req, e);
}

const struct driver_ops driver_exec = {
	.name = "exec",
	.id = DRIVER_EXEC,
	.isolates_files = true,
	.mounts = true,
	.check = check_config,
	.fill = fill_start,
};
