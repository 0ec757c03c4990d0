// SPDX-License-Identifier: Apache-2.0
/* task_start.c: one start request out of job, node and policy. Runs in: supervisor. */
#include "supervisor/alloc/task_start.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/service/task_env.h"
#include "supervisor/alloc/task_payload.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/signal_name.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/plugin_task.h"
#include "supervisor/volume/volumes.h"

#define MIB (1024 * 1024)

_Static_assert(EXEC_CORE_WORDS * 64 >= CORES_MAX, "every core has its bit");

/* A request while it is made. */
struct start {
	struct exec_task_start_req req;
	struct spec_writer spec;
	struct task_env env;
};

static void
fill_cores(const struct sup_alloc *sa, const struct task *task, struct exec_start *req)
{
	const struct alloc_cpu *own = alloc_task_cpu(&sa->a, task->name);

	if (!own || own->reserved_cores.n == 0)
		return;
	req->cpu_shares = (uint32_t)own->cpu_shares;
	for (size_t i = 0; i < own->reserved_cores.n; i++)
		if (own->reserved_cores.v[i] >= 0 && own->reserved_cores.v[i] < CORES_MAX)
			ipc_bit_set(req->cores, (unsigned)own->reserved_cores.v[i]);
}

/* What 64 bits do not hold is the most that they do. */
static uint64_t
bytes_of(int64_t mb)
{
	return mb <= 0 ? 0 : (uint64_t)(mb < INT64_MAX / MIB ? mb : INT64_MAX / MIB) * MIB;
}

static void
fill_resources(const struct sup_alloc *sa, const struct task *task, struct exec_start *req)
{
	const struct resources *res = task->resources;
	const struct log_config *logs = task->log_config;
	const struct alloc_memory given = alloc_task_memory(&sa->a, task);
	uint64_t memory = bytes_of(given.memory_mb), max = bytes_of(given.memory_max_mb);

	req->cpu_shares = res->cpu > 0 ? (uint32_t)res->cpu : 0;
	req->memory_bytes = max > memory ? max : memory;
	req->memory_soft_bytes = max > memory ? memory : 0;
	req->secrets_mb = res->secrets_mb > UINT32_MAX ? UINT32_MAX
			  : res->secrets_mb > 0        ? (uint32_t)res->secrets_mb
						       : 0;
	req->log_max_files = logs && logs->max_files > 0 ? (uint32_t)logs->max_files : 10;
	req->log_max_bytes =
	    (logs && logs->max_file_size_mb > 0 ? (uint64_t)logs->max_file_size_mb : 10) * MIB;
	req->logs_disabled = logs && logs->disabled == OPT_TRUE;
	req->lease_ms = group_stop_after_ms(sa->group);
}

static const struct volume_request *
request_of(const struct sup_alloc *sa, const char *alias)
{
	for (size_t i = 0; i < sa->group->volumes.n; i++)
		if (str_eq(sa->group->volumes.v[i].key, alias))
			return &sa->group->volumes.v[i].value;
	return NULL;
}

static int
fill_host_mount(struct sup *sup, const struct sup_alloc *sa, const struct volume_request *request,
    struct exec_mount *m, struct err *e)
{
	cleanup_free char *name = NULL;

	volume_request_source(request, alloc_name_index(sa->a.name), &name);
	if (!map_get(host_volume, &node_get(sup)->host_volumes, str(name)))
		return err_say(
		    e, -EINVAL, "host volume \"%.140s\" is not configured on this node", str(name));
	m->kind = EXEC_MOUNT_HOST_VOLUME;
	(void)IPC_TEXT_SET(m->name, str(name));
	return 0;
}

static int
fill_mount(struct sup *sup, struct alloc_runner *ar, const struct volume_mount *vm,
    struct exec_mount *m, struct err *e)
{
	const struct volume_request *request = request_of(ar->sa, str(vm->volume));
	const struct volume_mount_state *state;

	if (!request)
		return err_say(e, -EINVAL,
		    "volume_mount names volume \"%s\", which the group does not have",
		    str(vm->volume));
	m->read_only = request->read_only || vm->read_only;
	if (request->type == VOLUME_HOST)
		return fill_host_mount(sup, ar->sa, request, m, e);
	state = volume_find(sup, ar->sa, request->name ? request->name : vm->volume);
	if (!state || !state->published)
		return err_say(
		    e, -EAGAIN, "no CSI mount point found for volume: %s", str(vm->volume));
	m->kind = EXEC_MOUNT_CSI_VOLUME;
	m->place = state->place;
	m->proof = state->proof;
	m->read_only |= state->read_only;
	return 0;
}

/* The executor would refuse it too, after what it comes to, and with less to say. */
static bool
leads_up(const char *path)
{
	for (const char *part = path; part; part = strchr(part, '/')) {
		part += strspn(part, "/");
		if (strncmp(part, "..", 2) == 0 && (!part[2] || part[2] == '/'))
			return true;
	}
	return false;
}

static int
fill_mounts(struct sup *sup, struct alloc_runner *ar, const struct task *task, struct start *s,
    struct err *e)
{
	const size_t max = EXEC_MOUNTS_MAX - (task->csi_plugin ? PLUGIN_MOUNTS : 0);
	int r;

	if (task->volume_mounts.n > max)
		return err_say(e, -EINVAL, "task %s has %zu volume mounts, %zu are allowed",
		    task->name, task->volume_mounts.n, max);
	for (size_t i = 0; i < task->volume_mounts.n; i++) {
		const struct volume_mount *vm = &task->volume_mounts.v[i];
		cleanup_free char *dest = NULL;

		r = fill_mount(sup, ar, vm, &s->req.mounts[i], e);
		if (r < 0)
			return r;
		r = task_env_expand(&s->env, str(vm->destination), true, &dest, e);
		if (r < 0)
			return r;
		if (leads_up(dest))
			return err_say(e, -EINVAL,
			    "volume_mount \"%s\": destination \"%.100s\" leads up by \"..\"",
			    str(vm->volume), dest);
		if (strlen(dest) >= sizeof s->req.mounts[i].dest)
			return err_say(e, -EINVAL,
			    "volume_mount \"%s\": destination \"%.100s…\" has more than %zu bytes",
			    str(vm->volume), dest, sizeof s->req.mounts[i].dest - 1);
		(void)strcpy(s->req.mounts[i].dest, dest);
	}
	s->req.n_mounts = (uint32_t)task->volume_mounts.n;
	return 0;
}

static void
fill_env(const struct task_env *env, struct spec_writer *spec)
{
	for (size_t i = 0; i < env->vars.n; i++) {
		cleanup_free char *pair = NULL;

		if (str_setf(&pair, "%s=%s", env->vars.v[i].key, str(env->vars.v[i].value)) < 0) {
			spec->failed = -ENOMEM;
			return;
		}
		spec_add_str(spec, SPEC_ENV, pair);
	}
}

static int
fill_config(struct sup *sup, const struct driver_ops *driver, const struct task *task,
    struct start *s, struct err *e)
{
	struct task evaluated = *task;
	int r = driver_config_evaluate(task->config, &s->env, &evaluated.config, e);

	if (r < 0)
		return r;
	r = driver->check(sup->config, &evaluated, true, e);
	if (r == 0)
		r = driver->fill(&evaluated, &s->req.start, &s->spec, e);
	json_decref(evaluated.config);
	return r;
}

static int
fill(struct sup *sup, struct alloc_runner *ar, struct task_runner *tr,
    const struct driver_ops *driver, struct start *s, struct err *e)
{
	const struct task *task = tr->task;
	struct exec_start *req = &s->req.start;
	int r, signo = signal_from_name(str(task->kill_signal));

	if (signo < 0)
		return err_say(
		    e, -EINVAL, "kill_signal: there is no signal \"%s\"", task->kill_signal);
	if ((r = driver_usable(sup->config, driver, e)) < 0)
		return r == -EPERM ? -EINVAL : r;
	if (task->volume_mounts.n > 0 && !driver->mounts)
		return err_say(e, -EINVAL, "driver %s cannot mount volumes", driver->name);
	req->alloc = ar->sa->id;
	req->driver = (enum exec_driver)driver->id;
	if (!IPC_TEXT_SET(req->task, task->name))
		return err_say(e, -EINVAL, "'%.64s' cannot be a task's name", task->name);
	if (!IPC_TEXT_SET(req->user, str(task->user)))
		return err_say(e, -EINVAL, "'%.64s' is not a user name", task->user);
	req->kill_signal = (uint32_t)signo;
	req->kill_timeout_ms = (uint64_t)task->kill_timeout / 1000000;
	if (req->kill_timeout_ms > sup->config->max_kill_timeout_ms)
		req->kill_timeout_ms = sup->config->max_kill_timeout_ms;
	fill_resources(ar->sa, task, req);
	fill_cores(ar->sa, task, req);
	if ((r = task_env_make(sup, ar->sa, task, driver->isolates_files, &s->env)) < 0)
		return err_set(e, r, "make the environment of task %s", task->name);
	if ((r = fill_mounts(sup, ar, task, s, e)) < 0)
		return r;
	if (tr->plugin &&
	    (r = plugin_task_fill(tr->plugin, driver->isolates_files, &s->req, &s->env.vars)) < 0)
		return err_set(e, r, "prepare plugin %s", task->name);
	if (driver->isolates_files && sup->config->default_pid_host)
		req->pid_mode = EXEC_NS_HOST;
	if (driver->isolates_files && sup->config->default_ipc_host)
		req->ipc_mode = EXEC_NS_HOST;
	r = fill_config(sup, driver, task, s, e);
	if (r < 0 || (r = alloc_identities_add_files(ar->sa, task, &s->spec, e)) < 0)
		return r;
	return task_payload_add_file(ar->sa, task, &s->spec, e);
}

static const struct driver_ops *
begin(struct start *s, const struct task_runner *tr, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));

	memset(s, 0, sizeof *s);
	if (!driver)
		(void)err_say(e, -EINVAL, "this node has no driver \"%s\"", str(tr->task->driver));
	return driver;
}

int
task_start(struct sup *sup, struct alloc_runner *ar, struct task_runner *tr,
    const struct run_events *ev, struct run **ret, struct err *e)
{
	static struct start s;
	const struct driver_ops *driver = begin(&s, tr, e);
	int r, fd;

	if (!driver)
		return e->code;
	r = fill(sup, ar, tr, driver, &s, e);
	fill_env(&s.env, &s.spec);
	fd = spec_finish(&s.spec);
	if (r >= 0 && fd == -E2BIG)
		r = err_say(e, fd,
		    "task %s has more than %d variables, arguments and files, or %d bytes of them",
		    tr->task->name, SPEC_ENTRIES_MAX, SPEC_BYTES_MAX);
	else if (r >= 0 && fd < 0)
		r = err_set(e, fd, "make the start of task %s", tr->task->name);
	if (r >= 0) {
		*ret = run_start(sup, &ar->sa->id, tr->task->name, &s.req, fd, ev, tr);
		r = *ret ? 0 : err_set(e, -ENOMEM, "start task %s", tr->task->name);
	} else if (fd >= 0) {
		close_p(&fd);
	}
	task_env_done(&s.env);
	return r;
}

int
task_start_again(struct task_runner *tr, struct spec_writer *spec, bool env, struct exec_start *ret,
    struct err *e)
{
	static struct start s;
	const struct driver_ops *driver = begin(&s, tr, e);
	int r;

	if (!driver)
		return e->code;
	r = fill(tr->ar->sup, tr->ar, tr, driver, &s, e);
	if (env)
		fill_env(&s.env, spec);
	task_env_done(&s.env);
	/* What the task itself was started with stays its own. */
	free(s.spec.buf);
	*ret = s.req.start;
	ret->run = *run_id(tr->run);
	ret->lease_ms = 0;
	ret->pid_mode = ret->ipc_mode = EXEC_NS_PRIVATE;
	return r;
}
