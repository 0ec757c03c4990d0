// SPDX-License-Identifier: Apache-2.0
/* exec_policy.c: what a start may ask for. Nothing in the request is trusted. Runs in: exec-helper.
 */
#include <errno.h>
#include <linux/capability.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/privs.h"
#include "common/log.h"
#include "exec-helper/exec.h"

#define LOG_FILES_MAX 1000

/* What every exec task has, unless the configuration allows less or the job drops it. */
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
check_ids(const ExecTaskStartReq *req, struct exe_setup *setup, struct err *e)
{
	struct id run, alloc;

	if (!id_from_bytes(req->run.data, req->run.len, &run))
		return err_say(e, -EINVAL, "start: the run's id is none");
	if (!id_from_bytes(req->alloc.data, req->alloc.len, &alloc))
		return err_say(e, -EINVAL, "start: the alloc's id is none");
	if (!name_is_task(req->task))
		return err_say(e, -EINVAL, "start: '%.64s' cannot be a task's name", req->task);
	memcpy(setup->run, run.b, sizeof setup->run);
	memcpy(setup->alloc, alloc.b, sizeof setup->alloc);
	id_to_uuid(&alloc, setup->alloc_name);
	(void)strcpy(setup->keep.task, req->task);
	return 0;
}

static int
check_driver(
    struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup, struct err *e)
{
	bool exec = req->driver == EXEC_DRIVER__EXEC_DRIVER_EXEC;

	_Static_assert((int)EXEC_DRIVER__EXEC_DRIVER_RAW_EXEC == DRIVER_RAW_EXEC, "one numbering");
	_Static_assert((int)EXEC_DRIVER__EXEC_DRIVER_EXEC == DRIVER_EXEC, "one numbering");
	if (!exec && req->driver != EXEC_DRIVER__EXEC_DRIVER_RAW_EXEC)
		return err_say(e, -EINVAL, "start: driver %u is not known", (unsigned)req->driver);
	if (!(s->policy->drivers & 1u << req->driver))
		return err_say(
		    e, -EPERM, "driver %s is not enabled on this node", exec ? "exec" : "raw_exec");
	/* Making it anew needs what the drop took. The launcher starts another exec-helper, which
	 * gets this request again: nothing has been done for it yet. */
	if (exec && s->template_error.code == 0 && !exec_template_is_whole(s->policy)) {
		log_info("a masked file was replaced on the host: starting anew with all masks");
		exit(0);
	}
	if (exec && s->template_error.code < 0)
		return err_say(e, s->template_error.code, "driver exec is not available: %s",
		    s->template_error.msg);
	if ((unsigned)req->pid_mode > EXEC_NS_MODE__EXEC_NS_HOST ||
	    (unsigned)req->ipc_mode > EXEC_NS_MODE__EXEC_NS_HOST)
		return err_say(e, -EINVAL, "start: a namespace mode is not known");
	if ((unsigned)req->csi_plugin > PLUGIN_KIND__PLUGIN_MONOLITH)
		return err_say(
		    e, -EINVAL, "start: plugin kind %u is not known", (unsigned)req->csi_plugin);
	if (req->csi_plugin ? !name_is_component(req->plugin) : req->plugin[0] != '\0')
		return err_say(e, -EINVAL, "start: '%.64s' cannot be a plugin's name", req->plugin);
	setup->driver = (uint32_t)req->driver;
	setup->pid_host = req->pid_mode == EXEC_NS_MODE__EXEC_NS_HOST;
	setup->ipc_host = req->ipc_mode == EXEC_NS_MODE__EXEC_NS_HOST;
	setup->csi_plugin = (uint32_t)req->csi_plugin;
	return 0;
}

/* In the host's pid or ipc namespace a task reaches processes that are not its own: it gets no
 * capability that would reach further (PRIVSEP.md, "Host namespaces"). */
static int
check_host_modes(
    const struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup, struct err *e)
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
    struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup, struct err *e)
{
	const uint64_t allowed = s->policy->allow_caps;
	int r = check_host_modes(s, req, setup, e);

	if (r < 0 || setup->driver != DRIVER_EXEC)
		return r;
	/* The supervisor has said the names already. */
	if (req->cap_add & ~allowed)
		return err_say(e, -EPERM,
		    "cap_add: the agent's allow_caps does not have the capabilities of mask %#llx",
		    (unsigned long long)(req->cap_add & ~allowed));
	if (!setup->pid_host && !setup->ipc_host)
		setup->caps = ((default_caps & allowed) & ~req->cap_drop) | req->cap_add;
	return 0;
}

static int
check_group(
    const struct exec_state *s, const struct exe_user *u, gid_t gid, uint32_t driver, struct err *e)
{
	/* Who is in one of these may talk to the agent, which is to be root. */
	if (u->uid != 0 && (gid == s->args->drover_gid || gid == s->args->executor_gid))
		return err_say(e, -EPERM,
		    "running as user \"%s\" is disallowed: it has a group of the agent's", u->name);
	if (in_ranges(s->policy->denied_gids, s->policy->n_denied_gids, gid, driver))
		return err_say(e, -EPERM, "running as user \"%s\" is disallowed: gid %u is denied",
		    u->name, gid);
	return 0;
}

static int
check_user(
    struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup, struct err *e)
{
	const char *fallback = setup->driver == DRIVER_EXEC ? "nobody" : "root";
	struct exe_user *u = &setup->user;
	int r = exec_user_find(s, req->user[0] ? req->user : fallback, u, e);

	if (r < 0)
		return r;
	for (size_t i = 0; i < ELEMENTSOF(s->args->agent_uids); i++)
		if (u->uid == s->args->agent_uids[i] && u->uid != 0)
			return err_say(e, -EPERM,
			    "running as user \"%s\" is disallowed: it is one of the agent's own",
			    u->name);
	if (setup->driver == DRIVER_EXEC && u->uid == 0)
		return err_say(e, -EPERM, "running as user \"root\" is disallowed");
	if (in_ranges(s->policy->denied_uids, s->policy->n_denied_uids, u->uid, setup->driver))
		return err_say(e, -EPERM, "running as user \"%s\" is disallowed: uid %u is denied",
		    u->name, u->uid);
	r = check_group(s, u, u->gid, setup->driver, e);
	for (uint32_t i = 0; r == 0 && i < u->n_groups; i++)
		r = check_group(s, u, u->groups[i], setup->driver, e);
	return r;
}

static const char *const kind_dirs[] = {
	[PLUGIN_KIND__PLUGIN_CONTROLLER] = "controller",
	[PLUGIN_KIND__PLUGIN_NODE] = "node",
	[PLUGIN_KIND__PLUGIN_MONOLITH] = "monolith",
};

static int
set_csi_volume(
    const ExecTaskStartReq *req, const ExecMount *m, struct exe_setup_mount *ret, struct err *e)
{
	const VolumePlace *p = m->place;
	const MountProof *f = m->proof;
	char alloc[ID_UUID_SIZE];
	struct id id;

	if (!p || !f || (unsigned)p->kind >= ELEMENTSOF(kind_dirs) || !kind_dirs[p->kind] ||
	    !name_is_component(p->plugin) || !name_is_component(p->volume) ||
	    !name_is_component(p->usage) || !id_from_bytes(p->alloc.data, p->alloc.len, &id))
		return err_say(e, -EINVAL, "start: a volume's place or proof is missing or wrong");
	if (req->alloc.len != ID_BYTES || memcmp(req->alloc.data, p->alloc.data, ID_BYTES) != 0)
		return err_say(e, -EPERM, "start: the volume is published for another allocation");
	id_to_uuid(&id, alloc);
	(void)snprintf(ret->path, sizeof ret->path, "%s/%s/per-alloc/%s/%s/%s", kind_dirs[p->kind],
	    p->plugin, alloc, p->volume, p->usage);
	ret->kind = EXE_MOUNT_CSI;
	ret->proof = (struct mount_proof){ .mnt_id = f->mnt_id,
		.mnt_id_unique = f->mnt_id_unique,
		.dev_major = f->dev_major,
		.dev_minor = f->dev_minor,
		.ino = f->ino,
		.btime_sec = f->btime_sec,
		.btime_nsec = f->btime_nsec,
		.fs_type = f->fs_type,
		.fs_id = f->fs_id,
		.fs_flags = f->fs_flags };
	return 0;
}

static int
set_host_volume(struct exec_state *s, const ExecMount *m, struct exe_setup_mount *ret,
    struct exec_run *run, struct err *e)
{
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
		return 0;
	}
	return err_say(e, -EPERM, "host volume \"%.64s\" is not configured on this node", m->name);
}

/* The plugin's own directories: named by the request's plugin and alloc, not by the mount. */
static int
set_plugin_dir(const ExecTaskStartReq *req, const ExecMount *m, struct exe_setup *setup,
    struct exe_setup_mount *ret, struct err *e)
{
	if (!setup->csi_plugin)
		return err_say(
		    e, -EPERM, "start: only a csi_plugin task has a plugin's directories");
	ret->kind = EXE_MOUNT_SHARED;
	ret->give = m->kind == EXEC_MOUNT_KIND__EXEC_MOUNT_PLUGIN_SOCKET;
	if (ret->give)
		(void)snprintf(ret->path, sizeof ret->path, "sock/%s", setup->alloc_name);
	else
		(void)snprintf(
		    ret->path, sizeof ret->path, "%s/%s", kind_dirs[req->csi_plugin], req->plugin);
	return 0;
}

static int
check_mounts(struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup,
    struct exec_run *run, struct err *e)
{
	if (req->n_mounts > EXE_MOUNTS_MAX)
		return err_say(e, -E2BIG, "start: more than %d mounts", EXE_MOUNTS_MAX);
	for (size_t i = 0; i < req->n_mounts; i++) {
		const ExecMount *m = req->mounts[i];
		struct exe_setup_mount *ret = &setup->mounts[i];
		int r;

		memset(ret, 0, sizeof *ret);
		ret->read_only = m->read_only != 0;
		switch (m->kind) {
		case EXEC_MOUNT_KIND__EXEC_MOUNT_HOST_VOLUME:
			r = set_host_volume(s, m, ret, run, e);
			break;
		case EXEC_MOUNT_KIND__EXEC_MOUNT_CSI_VOLUME:
			r = set_csi_volume(req, m, ret, e);
			break;
		case EXEC_MOUNT_KIND__EXEC_MOUNT_PLUGIN_SOCKET:
		case EXEC_MOUNT_KIND__EXEC_MOUNT_PLUGIN_ROOT:
			r = set_plugin_dir(req, m, setup, ret, e);
			break;
		default:
			r = err_say(
			    e, -EINVAL, "start: mount kind %u is not known", (unsigned)m->kind);
		}
		if (r < 0)
			return r;
		/* A plugin by raw_exec sees its directories on the host: its socket directory is
		 * given to it, no more. */
		if (setup->driver == DRIVER_RAW_EXEC && ret->kind != EXE_MOUNT_SHARED)
			return err_say(e, -EINVAL, "driver raw_exec cannot mount volumes");
	}
	setup->n_mounts = (uint32_t)req->n_mounts;
	return 0;
}

int
exec_policy_check(struct exec_state *s, const ExecTaskStartReq *req, struct exe_setup *setup,
    struct exec_run *run, struct err *e)
{
	struct id id;
	int r;

	memset(run, -1, sizeof *run); /* no descriptor yet */
	run->n_volumes = 0;
	run->cores = req->n_cores > 0;
	memset(setup, 0, EXE_SETUP_SIZE(0));
	setup->magic = EXE_SETUP_MAGIC;
	if ((r = check_ids(req, setup, e)) < 0 || (r = check_driver(s, req, setup, e)) < 0 ||
	    (r = check_caps(s, req, setup, e)) < 0 ||
	    (r = check_mounts(s, req, setup, run, e)) < 0 ||
	    (run->cores && (r = exec_cores_check(s, req->n_cores, e)) < 0))
		return r;
	if (req->kill_signal < 1 || req->kill_signal > (uint32_t)SIGRTMAX)
		return err_say(e, -EINVAL, "start: kill signal %u is none", req->kill_signal);
	if (!req->logs_disabled && (req->log_max_files < 1 || req->log_max_files > LOG_FILES_MAX ||
				       req->log_max_bytes < 1))
		return err_say(e, -EINVAL,
		    "start: logs need at least one file of at least one byte, at most %d files",
		    LOG_FILES_MAX);
	memcpy(id.b, setup->run, sizeof id.b);
	id_to_hex(&id, run->name);
	setup->logs_disabled = req->logs_disabled != 0;
	setup->keep.log_max_files = req->log_max_files;
	setup->keep.log_max_bytes = req->log_max_bytes;
	setup->secrets_mb = req->secrets_mb > 0 ? req->secrets_mb : 1;
	setup->keep.lease_ms = req->lease_ms;
	setup->keep.kill_signal = req->kill_signal;
	setup->keep.kill_timeout_ms = req->kill_timeout_ms;
	setup->keep.drover_uid = s->args->agent_uids[0];
	setup->keep.executor_uid = s->args->executor_uid;
	setup->keep.executor_gid = s->args->executor_gid;
	setup->oom_score_adj = s->oom_score_adj;
	setup->memory_in_v2 = (s->cgroup.in_v2 & CGROUP_BIT(CGROUP_MEMORY)) != 0;
	for (int t = 0; t < CGROUP_TREES; t++)
		setup->trees |= exec_run_place(s, run, t) >= 0 ? CGROUP_BIT(t) : 0;
	(void)strcpy(setup->boot_id, s->boot_id);
	setup->size = (uint32_t)EXE_SETUP_SIZE(setup->n_mounts);
	/* Last, because it may start a child. */
	return check_user(s, req, setup, e);
}
