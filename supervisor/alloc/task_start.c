// SPDX-License-Identifier: Apache-2.0
/* task_start.c: makes the request that starts a task, from job, node and policy. Runs in:
 * supervisor.
 */
#include "supervisor/alloc/task_start.h"

#include <errno.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "proto/container_ids.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_network.h"
#include "supervisor/alloc/task_config.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_hooks.h"
#include "supervisor/alloc/task_image.h"
#include "supervisor/alloc/task_payload.h"
#include "supervisor/alloc/task_stop.h"
#include "supervisor/driver/container.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/run.h"
#include "supervisor/node/cores.h"
#include "supervisor/node/node_network.h"
#include "supervisor/node/node_state.h"
#include "supervisor/service/task_env.h"
#include "supervisor/volume/plugin_task.h"
#include "supervisor/volume/volumes.h"

#define MIB (1024 * 1024)

_Static_assert(EXEC_CORE_WORDS * 64 >= CORES_MAX, "every core has its bit");

/* A request that is being made. */
struct start {
	struct exec_task_start_req req;
	struct spec_writer spec;
	struct spec_writer *session; /* of a session; NULL: this is a start */
	struct task_env env;
};

static void
start_free(struct start *s)
{
	spec_writer_done(&s->spec);
	task_env_done(&s->env);
	free(s);
}
DEFINE_CLEANUP(struct start *, start_free);

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

/* Larger values become the largest that 64 bits can hold. */
static uint64_t
bytes_of(int64_t mb)
{
	return mb <= 0 ? 0 : (uint64_t)(mb < INT64_MAX / MIB ? mb : INT64_MAX / MIB) * MIB;
}

/* The fields of its lines in the journal. A name that is too long for a field is cut. */
static void
fill_log_store(const struct sup_alloc *sa, const struct agent_config *config,
    const struct task *task, struct exec_start *req)
{
	req->log_store = task_log_store(config, task);
	if (req->log_store == LOG_STORE_FILES)
		return;
	(void)snprintf(req->log_namespace, sizeof req->log_namespace, "%s", str(sa->a.namespace));
	(void)snprintf(req->log_job, sizeof req->log_job, "%s", str(sa->a.job_id));
	(void)snprintf(req->log_group, sizeof req->log_group, "%s", str(sa->a.task_group));
}

static void
fill_resources(const struct sup_alloc *sa, const struct task *task, struct exec_start *req)
{
	const struct resources *res = task->resources;
	const struct log_config *logs = task->log_config;
	const struct alloc_memory given = alloc_task_memory(&sa->a, task);
	uint64_t memory = bytes_of(given.memory_mb), max = bytes_of(given.memory_max_mb);
	bool unlimited = given.memory_max_mb == MEMORY_NO_LIMIT;

	req->cpu_shares = res->cpu > 0 ? (uint32_t)res->cpu : 0;
	req->memory_bytes = unlimited ? 0 : max > memory ? max : memory;
	req->memory_soft_bytes = unlimited || max > memory ? memory : 0;
	req->secrets_mb = res->secrets_mb > UINT32_MAX ? UINT32_MAX
			  : res->secrets_mb > 0        ? (uint32_t)res->secrets_mb
						       : 0;
	req->log_max_bytes =
	    (logs && logs->max_file_size_mb > 0 ? (uint64_t)logs->max_file_size_mb : 10) * MIB;
	req->logs_disabled = logs && logs->disabled == OPT_TRUE;
	req->log_max_files = req->logs_disabled            ? 0
			     : logs && logs->max_files > 0 ? (uint32_t)logs->max_files
							   : 10;
	req->lease_ms = group_stop_after_ms(sa->group);
}

/* Users of the machine are nobody in a container, whose own root could do nothing with a file of
 * theirs. */
static void
fill_artifacts(const struct driver_ops *driver, const struct task *task, struct exec_start *req)
{
	for (size_t i = 0; i < task->artifacts.n; i++) {
		req->own_artifacts |= task->artifacts.v[i].chown || driver->containers;
		req->own_shared |= task->artifacts.v[i].chown;
	}
}

static const struct volume_request *
find_request(const struct sup_alloc *sa, const char *alias)
{
	for (size_t i = 0; i < sa->group->volumes.n; i++)
		if (str_eq(sa->group->volumes.v[i].key, alias))
			return &sa->group->volumes.v[i].value;
	return NULL;
}

static int
fill_host_mount(const struct task_runner *tr, const struct volume_request *request,
    struct exec_mount *m, struct err *e)
{
	cleanup_free char *name = NULL;

	volume_request_source(request, alloc_name_index(tr->ar->sa->a.name), &name);
	if (!map_get(host_volume, &node_get(tr->ar->sup)->host_volumes, str(name)))
		return err_say(
		    e, -EINVAL, "host volume \"%.140s\" is not configured on this node", str(name));
	m->kind = EXEC_MOUNT_HOST_VOLUME;
	(void)IPC_TEXT_SET(m->name, str(name));
	return 0;
}

static int
fill_mount(const struct task_runner *tr, const struct volume_mount *vm, struct exec_mount *m,
    struct err *e)
{
	const struct volume_request *request = find_request(tr->ar->sa, str(vm->volume));
	const struct volume_mount_state *state;

	if (!request)
		return err_say(e, -EINVAL,
		    "volume_mount names volume \"%s\", which the group does not have",
		    str(vm->volume));
	m->read_only = request->read_only || vm->read_only;
	if (request->type == VOLUME_HOST)
		return fill_host_mount(tr, request, m, e);
	state = volume_find(tr->ar->sup, tr->ar->sa, request->name ? request->name : vm->volume);
	if (!state || !state->published)
		return err_say(
		    e, -EAGAIN, "no CSI mount point found for volume: %s", str(vm->volume));
	m->kind = EXEC_MOUNT_CSI_VOLUME;
	m->place = state->place;
	m->proof = state->proof;
	m->read_only |= state->read_only;
	return 0;
}

static const char *
fs_name(uint64_t magic)
{
	static const struct {
		uint64_t magic;
		const char *name;
	} known[] = { { FUSE_SUPER_MAGIC, "FUSE" }, { NFS_SUPER_MAGIC, "NFS" },
		{ SMB2_SUPER_MAGIC, "SMB" }, { CIFS_SUPER_MAGIC, "SMB" },
		{ CEPH_SUPER_MAGIC, "CephFS" }, { OVERLAYFS_SUPER_MAGIC, "overlay" } };

	for (size_t i = 0; i < ELEMENTSOF(known); i++)
		if (known[i].magic == magic)
			return known[i].name;
	return "its file system";
}

static void
tell_unmapped(struct task_runner *tr, const char *name, const char *fs)
{
	char text[ERR_MSG_SIZE];

	(void)snprintf(text, sizeof text,
	    "%s: %s cannot map ids, so all users of this container are other users of the volume, "
	    "with uids from %u on that change with each start: they can do what its modes permit "
	    "to others, or its server to everybody. A task of driver exec and a container with "
	    "userns_mode = \"host\" have the ids themselves",
	    name, fs, CONTAINER_ID_FIRST + run_id_range(tr->run) * CONTAINER_IDS);
	task_runner_tell(tr, EVENT_DRIVER_MESSAGE, text, false);
}

/* Paths of host volumes are among the mounts, at places that depend on all destinations. */
static bool
has_paths(const struct task *task)
{
	return driver_config_get(task, "volumes") || driver_config_get(task, "mount") ||
	       driver_config_get(task, "mounts");
}

void
task_start_tell_unmapped(struct task_runner *tr, uint32_t mounts)
{
	if (mounts != 0 && has_paths(tr->task)) {
		tell_unmapped(tr, "a volume or a directory of the machine", fs_name(0));
		return;
	}
	for (size_t i = 0; i < tr->task->volume_mounts.n && i < EXEC_MOUNTS_MAX; i++) {
		cleanup_free char *name =
		    mem_printf("volume \"%s\"", str(tr->task->volume_mounts.v[i].volume));
		struct exec_mount m = { 0 };
		struct err e = { 0 };

		if (!(mounts >> i & 1))
			continue;
		(void)fill_mount(tr, &tr->task->volume_mounts.v[i], &m, &e);
		tell_unmapped(tr, name, fs_name(m.proof.fs_type));
	}
}

/* The executor refuses such a path too, but with a less helpful error. */
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
fill_mounts(const struct task_runner *tr, struct start *s, struct err *e)
{
	const struct task *task = tr->task;
	const size_t max = EXEC_MOUNTS_MAX - (task->csi_plugin ? PLUGIN_MOUNTS : 0);
	int r;

	if (task->volume_mounts.n > max)
		return err_say(e, -EINVAL, "task %s has %zu volume mounts, %zu are allowed",
		    task->name, task->volume_mounts.n, max);
	for (size_t i = 0; i < task->volume_mounts.n; i++) {
		const struct volume_mount *vm = &task->volume_mounts.v[i];
		cleanup_free char *dest = NULL;

		r = fill_mount(tr, vm, &s->req.mounts[i], e);
		if (r < 0)
			return r;
		r = task_env_expand(&s->env, str(vm->destination), true, &dest, e);
		if (r < 0)
			return r;
		if (leads_up(dest))
			return err_say(e, -EINVAL,
			    "volume_mount \"%s\": destination \"%.100s\" has a component \"..\"",
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
		cleanup_free char *pair =
		    mem_printf("%s=%s", env->vars.v[i].key, str(env->vars.v[i].value));

		spec_add_str(spec, SPEC_ENV, pair);
	}
}

/* The dns block of the group's network comes before what CNI plugins say. */
static int
take_net(const struct driver_ops *driver, const struct task_runner *tr, struct task_env *env,
    struct task_net *ret, struct err *e)
{
	const struct task_group *group = tr->ar->sa->group;
	const struct network_resource *n = group->networks.n > 0 ? group->networks.v : NULL;
	const struct network_resource *own = group_own_network(group);
	const struct alloc_network_status *status = tr->ar->sa->a.network_status;
	int r = task_net_read(n, n && n->dns ? n->dns : status ? status->dns : NULL, env, ret, e);

	ret->address = task_network_address(tr);
	if (container_has_network(group, tr->task) || (own && str_eq(own->mode, "bridge")))
		(void)node_network_bridge_ip(tr->ar->sup->config, ret->gateway);
	if (r == 0 && *ret->hostname && !driver->containers)
		return err_say(e, -EINVAL,
		    "task %s: the group's network has a hostname: only containers can have it, "
		    "tasks of driver %s have the machine's",
		    tr->task->name, driver->name);
	return r;
}

/* As Nomad's driver: the part of the machine's CPU time that the task's MHz are, in each 100 ms.
 * The kernel permits no less than 1 ms. */
static uint32_t
cpu_quota_us(struct sup *sup, uint32_t mhz)
{
	const struct node_cpu *cpu = &node_get(sup)->node_resources.cpu;
	uint64_t us = cpu->cpu_shares <= 0
			  ? 0
			  : (uint64_t)mhz * 100000 * (uint64_t)cpu->total_cpu_cores /
				(uint64_t)cpu->cpu_shares;

	return us < 1000 ? 1000 : us > UINT32_MAX ? 0 : (uint32_t)us;
}

static int
fill_devices(struct task_runner *tr, const struct task *evaluated, struct start *s, struct err *e)
{
	char note[ERR_MSG_SIZE];
	int r = container_device_mounts(tr->ar->sup->config, evaluated, &s->req, note, e);

	if (r == 0 && *note)
		task_runner_tell(tr, EVENT_DRIVER_MESSAGE, note, false);
	return r;
}

static int
fill_config(const struct driver_ops *driver, struct task_runner *tr, struct start *s, struct err *e)
{
	const struct agent_config *config = tr->ar->sup->config;
	struct task evaluated = *tr->task;
	struct task_net net;
	int r = task_config_get(tr, &s->env, &evaluated.config, e);

	if (r < 0)
		return r;
	r = driver->check(config, &evaluated, true, e);
	if (r == 0)
		r = take_net(driver, tr, &s->env, &net, e);
	else
		net = (struct task_net){ 0 };
	if (r == 0)
		r = driver->fill(
		    config, &evaluated, task_image_config(tr), &net, &s->req.start, &s->spec, e);
	if (r == 0 && driver->containers && !s->session)
		r = container_host_mounts(config, &evaluated, &s->req, e);
	if (r == 0 && driver->containers && !s->session)
		r = fill_devices(tr, &evaluated, s, e);
	if (r == 0 && driver->containers && container_flag(&evaluated, "cpu_hard_limit"))
		s->req.start.cpu_quota_us = cpu_quota_us(tr->ar->sup, s->req.start.cpu_shares);
	if (r == 0 && s->session && driver->fill_process)
		driver->fill_process(
		    config, &evaluated, task_image_config(tr), &net, &s->req.start, s->session);
	if (r == 0)
		task_env_deny(&s->env, driver_config_get(&evaluated, "denied_envvars"));
	task_net_done(&net);
	json_decref(evaluated.config);
	return r;
}

static int
fill_stop(struct task_runner *tr, struct exec_start *req, struct err *e)
{
	int signo = task_stop_signal(tr);

	if (signo < 0)
		return err_say(
		    e, -EINVAL, "kill_signal: there is no signal \"%s\"", tr->task->kill_signal);
	req->kill_signal = (uint32_t)signo;
	req->kill_timeout_ms = (uint64_t)tr->task->kill_timeout / NS_PER_MS;
	if (req->kill_timeout_ms > tr->ar->sup->config->max_kill_timeout_ms)
		req->kill_timeout_ms = tr->ar->sup->config->max_kill_timeout_ms;
	return 0;
}

static int
fill_names(const struct task_runner *tr, const struct driver_ops *driver, struct exec_start *req,
    struct err *e)
{
	const struct task *task = tr->task;

	req->alloc = tr->ar->sa->id;
	req->driver = (enum exec_driver)driver->id;
	if (!IPC_TEXT_SET(req->task, task->name))
		return err_say(e, -EINVAL, "'%.64s' cannot be a task's name", task->name);
	if (!IPC_TEXT_SET(req->user, str(task->user)))
		return err_say(e, -EINVAL, "'%.64s' is not a user name", task->user);
	return 0;
}

static void
fill_namespaces(
    const struct agent_config *config, const struct driver_ops *driver, struct exec_start *req)
{
	if (driver->isolates_files && config->default_pid_host)
		req->pid_mode = EXEC_NS_HOST;
	if (driver->isolates_files && config->default_ipc_host)
		req->ipc_mode = EXEC_NS_HOST;
}

int
task_start_env(const struct task_runner *tr, const struct driver_ops *driver, struct task_env *ret,
    struct err *e)
{
	const char *lang = tr->ar->sup->config->lang;
	int r = task_env_make(tr->ar->sup, tr->ar->sa, tr->task, driver->isolates_files, ret);

	if (r < 0)
		return err_set(e, r, "make the environment of task %s", tr->task->name);
	if (lang[0] && !driver->containers && !task_env_has(ret, "LANG"))
		task_env_put(ret, "LANG", lang);
	if (tr->plugin)
		plugin_task_add_env(tr->plugin, driver->isolates_files, &ret->vars);
	return 0;
}

static int
fill_request(
    struct task_runner *tr, const struct driver_ops *driver, struct start *s, struct err *e)
{
	const struct task *task = tr->task;
	struct alloc_runner *ar = tr->ar;
	int r;

	if ((r = fill_stop(tr, &s->req.start, e)) < 0)
		return r;
	if ((r = driver_usable(ar->sup->config, driver, e)) < 0)
		return r == -EPERM ? -EINVAL : r;
	if (task->volume_mounts.n > 0 && !driver->mounts)
		return err_say(e, -EINVAL, "driver %s cannot mount volumes", driver->name);
	if ((r = fill_names(tr, driver, &s->req.start, e)) < 0)
		return r;
	fill_resources(ar->sa, task, &s->req.start);
	fill_artifacts(driver, task, &s->req.start);
	fill_log_store(ar->sa, ar->sup->config, task, &s->req.start);
	fill_cores(ar->sa, task, &s->req.start);
	if (container_has_network(ar->sa->group, task))
		s->req.start.network = container_network_id(&ar->sa->id, task->name);
	else if (group_own_network(ar->sa->group))
		s->req.start.network = ar->sa->id;
	fill_namespaces(ar->sup->config, driver, &s->req.start);
	r = task_start_env(tr, driver, &s->env, e);
	if (r < 0 || (r = fill_mounts(tr, s, e)) < 0)
		return r;
	if (tr->plugin)
		r = plugin_task_fill(tr->plugin, driver->isolates_files, &s->req);
	if (r < 0)
		return err_set(e, r, "prepare plugin %s", task->name);
	if ((r = fill_config(driver, tr, s, e)) < 0 || (r = task_hooks_fill(tr, &s->spec, e)) < 0)
		return r;
	return task_payload_add_file(ar->sa, task, &s->spec, e);
}

static const struct driver_ops *
find_driver(const struct task_runner *tr, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(tr->task->driver));

	if (!driver)
		(void)err_say(e, -EINVAL, "this node has no driver \"%s\"", str(tr->task->driver));
	return driver;
}

int
task_start_spec(const struct task_runner *tr, struct spec_writer *spec, struct err *e)
{
	int fd = spec_finish(spec);

	if (fd == -E2BIG)
		return err_say(e, fd,
		    "task %s has more than %d variables, arguments and files, or %d MiB of them",
		    tr->task->name, SPEC_ENTRIES_MAX, SPEC_BYTES_MAX >> 20);
	return fd < 0 ? err_set(e, fd, "make the request for task %s", tr->task->name) : fd;
}

int
task_start(struct task_runner *tr, const struct run_events *ev, struct run **ret, struct err *e)
{
	cleanup_with(start_free) struct start *s = mem_new(struct start);
	const struct driver_ops *driver = find_driver(tr, e);
	int r, fd;

	if (!driver)
		return e->code;
	r = fill_request(tr, driver, s, e);
	if (r < 0)
		return r;
	r = task_image_fill(tr, &s->req, e);
	if (r < 0)
		return r;
	fill_env(&s->env, &s->spec);
	fd = task_start_spec(tr, &s->spec, e);
	if (fd < 0)
		return fd;
	*ret = run_start(tr->ar->sup, &tr->ar->sa->id, tr->task->name, &s->req, fd, ev, tr);
	return 0;
}

int
task_start_again(struct task_runner *tr, struct spec_writer *spec, bool env, struct exec_start *ret,
    struct err *e)
{
	cleanup_with(start_free) struct start *s = mem_new(struct start);
	const struct driver_ops *driver = find_driver(tr, e);
	int r;

	if (!driver)
		return e->code;
	/* The session does not need the spec of the task, which is freed with s. */
	s->spec.no_files = true;
	s->session = spec;
	r = fill_request(tr, driver, s, e);
	if (env)
		fill_env(&s->env, spec);
	*ret = s->req.start;
	ret->run = *run_id(tr->run);
	ret->id_range = run_id_range(tr->run);
	ret->lease_ms = 0;
	ret->pid_mode = ret->ipc_mode = ret->net_mode = EXEC_NS_PRIVATE;
	return r;
}
