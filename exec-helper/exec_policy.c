// SPDX-License-Identifier: Apache-2.0
/* exec_policy.c: checks a start request against the policy. Nothing in the request is trusted. Runs
 * in: exec-helper. */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/devices.h"
#include "common/privs.h"
#include "common/log.h"
#include "exec-helper/exec.h"
#include "proto/container_ids.h"

#define LOG_FILES_MAX 1000

/* Capabilities of every exec task, unless the configuration allows fewer or the job drops some. */
static const uint64_t default_caps =
    CAP_BIT(NET_BIND_SERVICE) | CAP_BIT(AUDIT_WRITE) | CAP_BIT(KILL);

static bool
in_ranges(const struct config_range *ranges, uint32_t n, uint32_t id, uint32_t driver)
{
	for (uint32_t i = 0; i < n; i++)
		if ((ranges[i].drivers & 1u << driver) && id >= ranges[i].low &&
		    id <= ranges[i].high)
			return true;
	return false;
}

static int
check_ids(const struct exec_start *req, struct exe_setup *setup, struct err *e)
{
	if (id_is_zero(&req->run))
		return err_say(e, -EINVAL, "start: the run's id is missing");
	if (id_is_zero(&req->alloc))
		return err_say(e, -EINVAL, "start: the alloc's id is missing");
	if (!name_is_task(req->task))
		return err_say(e, -EINVAL, "start: '%.64s' cannot be a task's name", req->task);
	memcpy(setup->run, req->run.b, sizeof setup->run);
	memcpy(setup->alloc, req->alloc.b, sizeof setup->alloc);
	id_to_uuid(&req->alloc, setup->alloc_name);
	memcpy(setup->keep.task, req->task, sizeof setup->keep.task);
	return 0;
}

static int
check_driver(
    struct exec_state *s, const struct exec_start *req, struct exe_setup *setup, struct err *e)
{
	static const char *const names[] = { "", "raw_exec", "exec", "docker", "podman" };
	bool exec = req->driver == EXEC_DRIVER_EXEC;

	_Static_assert((int)EXEC_DRIVER_RAW_EXEC == DRIVER_RAW_EXEC, "one numbering");
	_Static_assert((int)EXEC_DRIVER_EXEC == DRIVER_EXEC, "one numbering");
	_Static_assert((int)EXEC_DRIVER_DOCKER == DRIVER_DOCKER, "one numbering");
	_Static_assert((int)EXEC_DRIVER_PODMAN == DRIVER_PODMAN, "one numbering");
	if (req->driver == EXEC_DRIVER_NONE)
		return err_say(e, -EINVAL, "start: a driver is missing");
	if (!(s->policy->drivers & 1u << req->driver))
		return err_say(
		    e, -EPERM, "driver %s is not enabled on this node", names[req->driver]);
	/* Making a new template needs privileges that this process has dropped. The launcher starts
	 * another exec-helper, which gets this request again; nothing was done for it yet. */
	if (exec && s->template_error.code == 0 && !exec_template_is_whole(s->policy)) {
		log_info("a masked file was replaced on the host: restarting to mask the new one");
		exit(0);
	}
	if (exec && s->template_error.code < 0)
		return err_say(e, s->template_error.code, "driver exec is not available: %s",
		    s->template_error.msg);
	if (driver_has_containers(req->driver) && s->containers_error.code < 0)
		return err_say(e, s->containers_error.code, "containers are not available: %s",
		    s->containers_error.msg);
	if (req->privileged && !(s->policy->allow_privileged & 1u << req->driver))
		return err_say(e, -EPERM, "privileged containers are not allowed on this node");
	if (req->host_ids && !(s->policy->allow_host_userns & 1u << req->driver))
		return err_say(
		    e, -EPERM, "containers with the machine's ids are not allowed on this node");
	if (req->csi_plugin ? !name_is_component(req->plugin) : req->plugin[0] != '\0')
		return err_say(e, -EINVAL, "start: '%.64s' cannot be a plugin's name", req->plugin);
	setup->driver = req->driver;
	setup->pid_host = req->pid_mode == EXEC_NS_HOST;
	setup->ipc_host = req->ipc_mode == EXEC_NS_HOST;
	setup->csi_plugin = req->csi_plugin;
	setup->privileged = req->privileged;
	setup->host_ids = req->host_ids;
	return 0;
}

/* In the host's pid or ipc namespace a task can reach foreign processes, so it gets no capability
 * (PRIVSEP.md, "Host namespaces"). */
static int
check_host_modes(const struct exec_state *s, const struct exec_start *req, struct exe_setup *setup,
    struct err *e)
{
	const char *refused = setup->pid_host && !s->policy->allow_host_pid   ? "pid"
			      : setup->ipc_host && !s->policy->allow_host_ipc ? "ipc"
									      : NULL;

	if (refused)
		return err_say(e, -EPERM,
		    "%s_mode \"host\" needs allow_host_%s = true on this node", refused, refused);
	if ((setup->pid_host || setup->ipc_host) && req->cap_add)
		return err_say(e, -EPERM,
		    "cap_add must be empty: a task whose pid_mode or ipc_mode is \"host\" has no "
		    "capability");
	return 0;
}

static int
check_caps(
    struct exec_state *s, const struct exec_start *req, struct exe_setup *setup, struct err *e)
{
	const uint64_t allowed = s->policy->allow_caps;
	int r = check_host_modes(s, req, setup, e);

	if (r < 0 || setup->driver != DRIVER_EXEC)
		return r;
	/* The supervisor's message already has the names. */
	if (req->cap_add & ~allowed)
		return err_say(e, -EPERM,
		    "cap_add: the agent's allow_caps does not have the capabilities of mask %#llx",
		    (unsigned long long)(req->cap_add & ~allowed));
	if (!setup->pid_host && !setup->ipc_host)
		setup->caps = ((default_caps & allowed) & ~req->cap_drop) | req->cap_add;
	return 0;
}

/* A container's users are in its image; outside they have the ids of its range. The number was
 * chosen by the supervisor, which starts only one container in a range at a time. */
static int
check_container(const struct exec_start *req, struct exe_setup *setup, struct err *e)
{
	struct exe_user *u = &setup->user;

	if (!req->host_ids &&
	    (req->id_range < CONTAINER_RANGE_FIRST || req->id_range >= CONTAINER_RANGES))
		return err_say(e, -EINVAL, "start: a container has no range of ids");
	/* In the machine's network, its abstract sockets, its settings and rules of firewalls would
	 * take uid 0 for root of the machine. */
	if (req->host_ids &&
	    (req->privileged || (req->net_mode != EXEC_NS_PRIVATE && id_is_zero(&req->network))))
		return err_say(e, -EPERM,
		    "a container with the machine's ids cannot be privileged or in the network of "
		    "the machine");
	if ((setup->csi_plugin > PLUGIN_CONTROLLER && !req->privileged) || setup->pid_host ||
	    setup->ipc_host)
		return err_say(e, -EPERM,
		    "start: a container cannot be in namespaces of the machine, and a CSI plugin "
		    "that mounts only if it is privileged");
	u->uid = u->gid = req->privileged || req->host_ids
			      ? 0
			      : CONTAINER_ID_FIRST + req->id_range * CONTAINER_IDS;
	setup->caps = req->privileged ? privs_all_caps() : 0;
	setup->net_private = req->net_mode == EXEC_NS_PRIVATE;
	return 0;
}

/* Ordinary tasks cannot have the ids of containers, by which they could reach into them. */
static bool
is_container_id(uint32_t id)
{
	return id >= CONTAINER_ID_FIRST && id <= CONTAINER_ID_LAST;
}

static int
check_group(
    const struct exec_state *s, const struct exe_user *u, gid_t gid, uint32_t driver, struct err *e)
{
	/* Members of these groups may talk to the agent, which amounts to root. */
	if (u->uid != 0 && (gid == s->args->drover_gid || gid == s->args->executor_gid))
		return err_say(e, -EPERM,
		    "running as user \"%s\" is disallowed: it has a group of the agent's", u->name);
	if (is_container_id(gid))
		return err_say(e, -EPERM,
		    "running as user \"%s\" is disallowed: gid %u is of the ids of containers",
		    u->name, gid);
	if (in_ranges(s->policy->denied_gids, s->policy->n_denied_gids, gid, driver))
		return err_say(e, -EPERM, "running as user \"%s\" is disallowed: gid %u is denied",
		    u->name, gid);
	return 0;
}

static int
check_user(
    struct exec_state *s, const struct exec_start *req, struct exe_setup *setup, struct err *e)
{
	const char *fallback = setup->driver == DRIVER_EXEC ? "nobody" : "root";
	struct exe_user *u = &setup->user;
	int r = driver_has_containers(setup->driver)
		    ? check_container(req, setup, e)
		    : exec_user_find(s, req->user[0] ? req->user : fallback, u, e);

	if (r < 0 || driver_has_containers(setup->driver))
		return r;
	for (size_t i = 0; i < ELEMENTSOF(s->args->agent_uids); i++)
		if (u->uid == s->args->agent_uids[i] && u->uid != 0)
			return err_say(e, -EPERM,
			    "running as user \"%s\" is disallowed: it is one of the agent's own",
			    u->name);
	if (is_container_id(u->uid))
		return err_say(e, -EPERM,
		    "running as user \"%s\" is disallowed: uid %u is of the ids of containers",
		    u->name, u->uid);
	if (setup->driver == DRIVER_EXEC && u->uid == 0)
		return err_say(e, -EPERM, "running as user \"root\" is disallowed");
	for (uint32_t i = 0; i < s->policy->n_denied_users; i++)
		if ((s->policy->checked_drivers & 1u << setup->driver) &&
		    strcmp(s->policy->denied_users[i], u->name) == 0)
			return err_say(e, -EPERM,
			    "running as user \"%s\" is disallowed: user.denylist names it",
			    u->name);
	if (in_ranges(s->policy->denied_uids, s->policy->n_denied_uids, u->uid, setup->driver))
		return err_say(e, -EPERM, "running as user \"%s\" is disallowed: uid %u is denied",
		    u->name, u->uid);
	r = check_group(s, u, u->gid, setup->driver, e);
	for (uint32_t i = 0; r == 0 && i < u->n_groups; i++)
		r = check_group(s, u, u->groups[i], setup->driver, e);
	return r;
}

static const char *const kind_dirs[] = {
	[PLUGIN_CONTROLLER] = "controller",
	[PLUGIN_NODE] = "node",
	[PLUGIN_MONOLITH] = "monolith",
};

static int
set_csi_volume(const struct exe_setup *setup, const struct exec_start *req,
    const struct exec_mount *m, struct exe_setup_mount *ret, struct err *e)
{
	const struct volume_place *p = &m->place;

	if (p->kind == PLUGIN_NONE || !name_is_component(p->plugin) ||
	    !name_is_component(p->volume) || !name_is_component(p->usage) || id_is_zero(&p->alloc))
		return err_say(e, -EINVAL, "start: a volume's place is missing or wrong");
	if (!id_equal(&req->alloc, &p->alloc))
		return err_say(e, -EPERM, "start: the volume is published for another allocation");
	/* Its node would have to be made by root of the machine, in the container's root. */
	if (m->proof.is_block && driver_has_containers(setup->driver))
		return err_say(e, -EINVAL,
		    "volume \"%s\" is a block device, which a container cannot have: use the "
		    "driver "
		    "exec, or attachment_mode = \"file-system\"",
		    p->volume);
	(void)snprintf(ret->path, sizeof ret->path, "%s/%s/per-alloc/%s/%s/%s", kind_dirs[p->kind],
	    p->plugin, setup->alloc_name, p->volume, p->usage);
	ret->kind = EXE_MOUNT_CSI;
	ret->proof = m->proof;
	return 0;
}

/* Root of a container has the powers of root over files whose ids are mapped. So the ids of a
 * volume's files are mapped only if nobody else can reach these. */
static int
check_volume_ids(const struct exec_state *s, uint32_t i, const struct exe_setup *setup,
    struct exe_setup_mount *ret, struct err *e)
{
	const struct config_host_volume *v = &s->policy->host_volumes[i];
	bool shared =
	    driver_has_containers(setup->driver) && !setup->privileged && !s->volume_private[i];

	ret->own_ids = !shared || setup->host_ids;
	if (!shared || ret->read_only)
		return 0;
	return err_say(e, -EPERM,
	    "host volume \"%s\" must be read-only in a container: all users of the machine can "
	    "reach %s, and could run set-user-id programs of root that the container leaves there; "
	    "let only root enter a directory above it (chmod 0700)",
	    v->name, v->path);
}

static int
set_host_volume(struct exec_state *s, const struct exec_mount *m, const struct exe_setup *setup,
    struct exe_setup_mount *ret, struct exec_run *run, struct err *e)
{
	/* The executor, as root, opens it, where the task's user might not be able to. */
	if (m->path[0] && !driver_has_containers(setup->driver))
		return err_say(e, -EINVAL, "start: only a container can have a part of a volume");
	for (uint32_t i = 0; i < s->policy->n_host_volumes; i++) {
		const struct config_host_volume *v = &s->policy->host_volumes[i];

		if (strcmp(v->name, m->name) != 0)
			continue;
		if (s->volumes[i] < 0)
			return err_say(e, s->volume_errors[i].code,
			    "host volume \"%s\" cannot be used: %s", v->name,
			    s->volume_errors[i].msg);
		if (v->read_only && !m->read_only)
			return err_say(e, -EROFS, "host volume \"%s\" is read-only", v->name);
		run->volumes[run->n_volumes++] = s->volumes[i];
		ret->kind = EXE_MOUNT_HOST;
		memcpy(ret->path, m->path, sizeof m->path);
		return check_volume_ids(s, i, setup, ret, e);
	}
	return err_say(e, -EPERM, "host volume \"%.64s\" is not configured on this node", m->name);
}

/* The executor opens it, through no link. */
static int
set_device(const struct exec_state *s, const struct exec_mount *m, const struct exe_setup *setup,
    struct exe_setup_mount *ret, struct err *e)
{
	if (!driver_has_containers(setup->driver) ||
	    !devices_allow(&s->policy->allow_devices[setup->driver == DRIVER_PODMAN], m->path))
		return err_say(e, -EPERM,
		    "device \"/dev/%s\" is not allowed on this node: allow_devices does not have "
		    "it",
		    m->path);
	ret->kind = EXE_MOUNT_DEVICE;
	memcpy(ret->path, m->path, sizeof m->path);
	return 0;
}

/* The plugin's own directories are named by the request's plugin and alloc, not by the mount. */
static int
set_plugin_dir(const struct exec_start *req, const struct exec_mount *m, struct exe_setup *setup,
    struct exe_setup_mount *ret, struct err *e)
{
	if (!setup->csi_plugin)
		return err_say(
		    e, -EPERM, "start: plugin directories are only for csi_plugin tasks");
	ret->kind = EXE_MOUNT_SHARED;
	ret->give = m->kind == EXEC_MOUNT_PLUGIN_SOCKET;
	if (ret->give)
		(void)snprintf(ret->path, sizeof ret->path, "sock/%s", setup->alloc_name);
	else
		(void)snprintf(
		    ret->path, sizeof ret->path, "%s/%s", kind_dirs[req->csi_plugin], req->plugin);
	return 0;
}

static int
check_mount(struct exec_state *s, const struct exec_start *req, const struct exec_mount *m,
    struct exe_setup *setup, struct exe_setup_mount *ret, struct exec_run *run, struct err *e)
{
	memset(ret, 0, sizeof *ret);
	ret->read_only = m->read_only;
	if (setup->driver != DRIVER_RAW_EXEC && m->dest[0] != '/')
		return err_say(e, -EINVAL, "start: the destination of a mount is not absolute");
	memcpy(ret->dest, m->dest, sizeof ret->dest);
	switch (m->kind) {
	case EXEC_MOUNT_HOST_VOLUME:
		return set_host_volume(s, m, setup, ret, run, e);
	case EXEC_MOUNT_CSI_VOLUME:
		return set_csi_volume(setup, req, m, ret, e);
	case EXEC_MOUNT_PLUGIN_SOCKET:
	case EXEC_MOUNT_PLUGIN_ROOT:
		return set_plugin_dir(req, m, setup, ret, e);
	case EXEC_MOUNT_DEVICE:
		return set_device(s, m, setup, ret, e);
	case EXEC_MOUNT_NONE:
		break;
	}
	return err_say(e, -EINVAL, "start: a mount is of no kind");
}

static int
check_mounts(struct exec_state *s, const struct exec_start *req, const struct exec_mount *mounts,
    uint32_t n, struct exe_setup *setup, struct exec_run *run, struct err *e)
{
	_Static_assert(EXEC_MOUNTS_MAX == EXE_MOUNTS_MAX && EXEC_DEST_SIZE == EXE_PATH_SIZE,
	    "an executor gets them as they are");
	for (uint32_t i = 0; i < n; i++) {
		struct exe_setup_mount *ret = &setup->mounts[i];
		int r = check_mount(s, req, &mounts[i], setup, ret, run, e);

		if (r < 0)
			return r;
		/* A raw_exec plugin sees its directories on the host; only its socket directory is
		 * given to its user. */
		if (setup->driver == DRIVER_RAW_EXEC && ret->kind != EXE_MOUNT_SHARED)
			return err_say(e, -EINVAL, "driver raw_exec cannot mount volumes");
	}
	setup->n_mounts = n;
	return 0;
}

int
exec_policy_check(struct exec_state *s, const struct exec_start *req,
    const struct exec_mount *mounts, uint32_t n_mounts, struct exe_setup *setup,
    struct exec_run *run, struct err *e)
{
	int r;

	memset(run, -1, sizeof *run); /* all descriptors are -1 */
	run->n_volumes = 0;
	run->cores = exec_cores_any(req->cores);
	memset(setup, 0, EXE_SETUP_SIZE(0));
	setup->magic = EXE_SETUP_MAGIC;
	if ((r = check_ids(req, setup, e)) < 0 || (r = check_driver(s, req, setup, e)) < 0 ||
	    (r = check_caps(s, req, setup, e)) < 0 ||
	    (r = check_mounts(s, req, mounts, n_mounts, setup, run, e)) < 0 ||
	    (run->cores && (r = exec_cores_check(s, e)) < 0))
		return r;
	if (req->kill_signal < 1 || req->kill_signal > (uint32_t)SIGRTMAX ||
	    req->oom_score_adj > 1000)
		return err_say(e, -EINVAL, "start: unknown kill signal or oom_score_adj");
	if (!req->logs_disabled && (req->log_max_files < 1 || req->log_max_files > LOG_FILES_MAX ||
				       req->log_max_bytes < 1))
		return err_say(e, -EINVAL,
		    "start: logs need at least one file of at least one byte, at most %d files",
		    LOG_FILES_MAX);
	if (!id_is_zero(&req->network) && !id_equal(&req->network, &req->alloc) &&
	    !driver_has_containers(req->driver))
		return err_say(e, -EPERM, "start: only a container has a network of its own");
	id_to_hex(&req->run, run->name);
	setup->logs_disabled = req->logs_disabled;
	setup->tty = req->tty;
	setup->own_artifacts = req->own_artifacts;
	setup->own_shared = req->own_shared;
	setup->own_resolv_conf = req->own_resolv_conf;
	setup->own_network = !id_is_zero(&req->network);
	id_to_uuid(&req->network, run->network_name);
	setup->keep.log_store = req->log_store;
	memcpy(setup->log_namespace, req->log_namespace, sizeof setup->log_namespace);
	memcpy(setup->log_job, req->log_job, sizeof setup->log_job);
	memcpy(setup->log_group, req->log_group, sizeof setup->log_group);
	setup->keep.log_max_files = req->log_max_files;
	setup->keep.log_max_bytes = req->log_max_bytes;
	setup->secrets_mb = req->secrets_mb > 0 ? req->secrets_mb : 1;
	setup->keep.lease_ms = req->lease_ms;
	setup->keep.kill_signal = req->kill_signal;
	setup->keep.kill_timeout_ms = req->kill_timeout_ms;
	setup->keep.drover_uid = s->args->agent_uids[0];
	setup->keep.executor_uid = s->args->executor_uid;
	setup->keep.executor_gid = s->args->executor_gid;
	setup->oom_score_adj = req->oom_score_adj;
	setup->memory_in_v2 = (s->cgroup.in_v2 & CGROUP_BIT(CGROUP_MEMORY)) != 0;
	for (int t = 0; t < CGROUP_TREES; t++)
		setup->trees |= exec_run_place(s, run, t) >= 0 ? CGROUP_BIT(t) : 0;
	(void)strcpy(setup->boot_id, s->boot_id);
	setup->n_layers = 0;
	setup->net_private = 0;
	setup->size = (uint32_t)EXE_SETUP_SIZE(setup->n_mounts);
	/* Last, because the look-up may start a child. */
	return check_user(s, req, setup, e);
}
