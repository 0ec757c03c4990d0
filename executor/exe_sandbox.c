// SPDX-License-Identifier: Apache-2.0
/* exe_sandbox.c: all changes of privileges and namespaces. Runs in: executor, as root until its
 * drop. */
#include <errno.h>
#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/privs.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_container_filter.h"
#include "executor/exe_filter.h"
#include "executor/exe_host_filter.h"
#include "executor/exe_plugin_filter.h"
#include "executor/exe_task_filter.h"

/* Starts a new session, and becomes the parent of orphans of its task: as pid 1 or as subreaper. */
void
exe_sandbox_prepare(struct exe *x)
{
	(void)close_range(EXE_FD_VOLUMES + EXE_MOUNTS_MAX, ~0U, 0);
	(void)close_range(EXE_FD_SETUP, ~0U, CLOSE_RANGE_CLOEXEC);
	(void)setsid();
	(void)umask(022);
	(void)prctl(PR_SET_NAME, "drover-executor", 0, 0, 0);
	if (getpid() != 1)
		(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	if (x->setup->trees & CGROUP_BIT(CGROUP_SYSTEMD))
		(void)fd_write_file(EXE_FD_SYSTEMD_EXEC, "tasks", "0");
	/* The bounding set is reduced once for the task and this process, because each step makes
	 * new credentials; both drops prove it. */
	if (x->setup->driver != DRIVER_RAW_EXEC)
		(void)privs_bound(x->setup->caps | CAP_BIT(KILL));
}

int
exe_sandbox_enter(struct exe *x)
{
	int flags = CLONE_NEWNS | (x->setup->ipc_host ? 0 : CLONE_NEWIPC);

	/* The child of a container clones the namespaces that it starts in: from its user namespace
	 * it could not join a network. */
	if (x->container && x->setup->own_network && setns(EXE_FD_NETWORK, CLONE_NEWNET) < 0)
		return -errno;
	if (x->container)
		return setns(EXE_FD_CONTAINERS, CLONE_NEWNS) < 0 ? -errno : 0;

	x->in_host_ns = x->setup->pid_host || x->setup->ipc_host;
	return setns(EXE_FD_TEMPLATE, CLONE_NEWNS) < 0 || unshare(flags) < 0 ? -errno : 0;
}

/* Reads the namespaces of this process (for pid: of its children), through the host's /proc. */
static int
read_namespaces(ino_t ret[3])
{
	static const char *const links[] = { "self/ns/mnt", "self/ns/pid_for_children",
		"self/ns/ipc" };
	struct stat st;

	for (size_t i = 0; i < ELEMENTSOF(links); i++) {
		if (fstatat(EXE_FD_PROC, links[i], &st, 0) < 0)
			return -errno;
		ret[i] = st.st_ino;
	}
	return 0;
}

/* The task's namespaces are not taken from a message: those before and after joining are compared.
 * Processes of a container see its session's child in /proc before that has joined their user
 * namespace, so it must not have the machine's mounts and network then. */
int
exe_sandbox_join(struct exe *x)
{
	const int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWUTS;
	ino_t host[3], task[3];
	int r;

	if ((r = read_namespaces(host)) < 0)
		return r;
	/* Its child joins the others, when it is in the container's user namespace. */
	if (setns(EXE_FD_TASK, x->container ? CLONE_NEWPID | CLONE_NEWNET : flags) < 0)
		return -errno;
	if (x->container)
		return setns(EXE_FD_CONTAINERS, CLONE_NEWNS) < 0 ? -errno : 0;
	if ((r = read_namespaces(task)) < 0)
		return r;
	x->in_host_ns = host[1] == task[1] || host[2] == task[2];
	return host[0] == task[0] ? -EPERM : 0;
}

/* The child has a copy of the executor's memory, and descriptors that lead out of the container.
 * Until it executes the program, no process of the container may look into it. Joining the own user
 * namespace is refused, so the task of a session is a container. */
int
exe_sandbox_become_inner_root(struct exe *x)
{
	const int flags = CLONE_NEWNS | CLONE_NEWIPC | CLONE_NEWNET | CLONE_NEWUTS |
			  (x->setup->privileged ? 0 : CLONE_NEWUSER);

	if (prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ||
	    (x->session && setns(EXE_FD_TASK, flags) < 0) || setgroups(0, NULL) < 0 ||
	    setresgid(0, 0, 0) < 0 || setresuid(0, 0, 0) < 0)
		return -errno;
	return prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) < 0 ? -errno : 0;
}

uint64_t
exe_sandbox_bounding(void)
{
	uint64_t caps = 0;

	for (unsigned cap = 0; cap < 64; cap++)
		if (prctl(PR_CAPBSET_READ, cap, 0, 0, 0) == 1)
			caps |= 1ull << cap;
	return caps;
}

void
exe_sandbox_own_files(uid_t uid, gid_t gid)
{
	(void)setfsgid(gid);
	(void)setfsuid(uid);
}

/* As Docker: root of the container has the capabilities, another user may get them from set-user-id
 * programs, unless the job forbids that. */
static int
drop_in_container(const struct exe *x)
{
	const struct exe_inside *in = &exe_inside;
	const struct privs p = {
		.uid = in->uid,
		.gid = in->gid,
		.groups = in->groups,
		.n_groups = in->n_groups,
		.bounding = in->caps,
		.caps = in->uid == 0 ? in->caps : 0,
		.no_new_privs = in->no_new_privs,
		.filter = x->setup->privileged ? &exe_plugin_prog : &exe_container_prog,
		.filter_first = !in->no_new_privs,
	};

	return unshare(CLONE_NEWCGROUP) < 0 ? -errno : privs_drop(&p, NULL);
}

/* A raw_exec task as root is plain root; as another user it is like a login; an exec task is
 * confined. */
int
exe_sandbox_task(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	gid_t groups[EXE_GROUPS_MAX + 1];
	struct privs p = {
		.uid = s->user.uid,
		.gid = s->user.gid,
		.groups = groups,
		.n_groups = s->user.n_groups,
		.bounding = PRIVS_KEEP_BOUNDING,
	};

	if (x->container)
		return drop_in_container(x);
	/* A session of an exec task has joined the task's namespaces already. */
	if (s->own_network && setns(EXE_FD_NETWORK, CLONE_NEWNET) < 0)
		return -errno;
	memcpy(groups, s->user.groups, s->user.n_groups * sizeof groups[0]);
	if (x->alloc_gid)
		groups[p.n_groups++] = x->alloc_gid;
	if (s->driver == DRIVER_RAW_EXEC && s->user.uid == 0)
		return setgroups(s->user.n_groups, s->user.groups) < 0 ||
			       setresgid(s->user.gid, s->user.gid, s->user.gid) < 0
			   ? -errno
			   : 0;
	if (s->driver == DRIVER_RAW_EXEC)
		return privs_drop(&p, NULL);
	/* After the cgroups are entered, they become the root of the task's cgroup namespace. */
	if (unshare(CLONE_NEWCGROUP) < 0)
		return -errno;
	p.caps = p.inheritable = p.ambient = p.bounding = x->in_host_ns ? 0 : s->caps;
	p.no_new_privs = true;
	p.filter = x->in_host_ns                 ? &exe_host_prog
		   : p.caps & CAP_BIT(SYS_ADMIN) ? &exe_plugin_prog
						 : &exe_task_prog;
	return privs_drop(&p, NULL);
}

/* The privileges of an executor once its task runs; the settings contain its uid. */
static const struct privs executor = {
	.caps = CAP_BIT(KILL),
	.bounding = CAP_BIT(KILL),
	.no_new_privs = true,
	.filter = &exe_prog,
};

void
exe_sandbox_describe(void)
{
	privs_describe(&executor, "executor", "own", false);
}

int
exe_sandbox_drop(struct exe *x)
{
	struct privs p = executor;
	int r;

	p.uid = x->keep.executor_uid;
	p.gid = x->keep.executor_gid;
	if (p.uid == 0 || p.gid == 0)
		return exe_failed(x, EXE_STEP_DROP, EPERM, 0);
	if ((r = privs_chroot(EXE_FD_LOGS, NULL)) < 0)
		return exe_failed(x, EXE_STEP_DROP, -r, 0);
	CRASH_POINT(EXE_AFTER_CHROOT);
	/* Closes descriptors that only the set-up needed. The lease stays open; it is -1 if there
	 * is none. */
	if (x->keep.lease_ms > 0)
		x->lease_fd = EXE_FD_LEASE;
	else
		(void)close(EXE_FD_LEASE);
	(void)close(EXE_FD_LOGS);
	(void)close(x->task_dir);
	(void)close_range(EXE_FD_CGROUP, EXE_FD_BINARY - 1, 0);
	r = privs_drop(&p, NULL);
	return r < 0 ? exe_failed(x, EXE_STEP_DROP, -r, 0) : 0;
}
