// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_connect.c: connects to a plugin's socket. Runs in: mount-helper, and a child of it that gives
 * up all privilege.
 *
 * The socket lies in a directory of the plugin's user, so nobody trusts its name: it is opened
 * without links as O_PATH, and connected to through that descriptor, as the directory's owner and
 * with nothing else. Who listens is asked of the kernel.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/privs.h"
#include "mount-helper/mnt.h"

#define CONNECT_TIMEOUT_MS 2000

const struct proc_child mnt_connect_child = {
	.name = "mount-helper-connect",
	.user = "plugin",
	.privs = { .no_new_privs = true },
};

struct target {
	uid_t uid;
	gid_t gid;
	pid_t helper;
};

static int
connect_fd(int socket_fd, struct err *e)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	if (fd < 0)
		return err_set(e, -errno, "make a socket for the plugin");
	(void)snprintf(addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d", socket_fd);
	if (connect(fd, (const struct sockaddr *)&addr, sizeof addr) == 0)
		return steal_fd(&fd);
	if (errno == EAGAIN)
		return err_say(e, -EAGAIN,
		    "the plugin does not take connections: the queue of its csi.sock is full");
	if (errno == ECONNREFUSED)
		return err_say(
		    e, -ECONNREFUSED, "the plugin's csi.sock is stale: nobody listens on it");
	return err_set(e, -errno, "connect to the plugin's csi.sock");
}

/*
 * In the child. Of five sets the bounding one is empty already (mount-helper never execs); the drop
 * proves all.
 */
static int
connect_as_owner(int socket_fd, const void *arg, struct mnt_result *ret, struct err *e)
{
	const struct target *t = arg;
	struct privs nothing = mnt_connect_child.privs;
	int r;

	nothing.uid = t->uid;
	nothing.gid = t->gid;
	r = privs_drop(&nothing, e);
	if (r < 0)
		return r;
	privs_die_with_parent(t->helper); /* the change of uid took it away */
	CRASH_POINT(MNT_CHILD_AFTER_DROP);
	r = connect_fd(socket_fd, e);
	if (r < 0)
		return r;
	ret->fd = r;
	return 0;
}

/*
 * Anybody of that user could have bound this name: the one who called listen() must be in the
 * plugin's cgroup.
 */
static int
check_listener(const struct mnt *m, const struct mnt_job *j, int fd, struct err *e)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof peer;
	char run[ID_HEX_SIZE];

	id_to_hex(&j->run, run);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return err_set(e, -errno, "ask who listens on csi.sock");
	if (peer.pid <= 0 || !cgroup_has_pid(m->args->cgroup, run, peer.pid))
		return err_say(e, -EPERM,
		    "csi.sock is not the plugin's: process %d listens, which is not of run %s",
		    (int)peer.pid, run);
	return 0;
}

static void
on_connected(struct mnt *m, const struct mnt_job *j, struct mnt_result *res)
{
	MntPluginConnectRep rep = MNT_PLUGIN_CONNECT_REP__INIT;
	int r = res->fd < 0 ? -EIO : check_listener(m, j, res->fd, &res->e);

	(void)proc_answer(&mnt_spec, j->type, j->serial, r, &rep.base, res->fd, &res->e, &res->e);
}

static bool
is_agent(const struct proc_args *a, uid_t uid, gid_t gid)
{
	for (size_t i = 0; i < ELEMENTSOF(a->agent_uids); i++)
		if (a->agent_uids[i] == uid)
			return true;
	return gid == a->drover_gid || gid == a->executor_gid;
}

int
mnt_on_plugin_connect(
    void *state, const struct ipc_packet *p, ProtobufCMessage *rep, int *ret_fd, struct err *e)
{
	struct mnt *m = state;
	const MntPluginConnectReq *req = (const MntPluginConnectReq *)(const void *)p->msg;
	cleanup_close int dir = -1, sock = -1;
	struct target t = { .helper = getpid() };
	char alloc[ID_UUID_SIZE], what[96];
	struct id run;
	struct stat st;
	int r;

	if ((r = mnt_alloc_read(&req->alloc, alloc, e)) < 0)
		return r;
	if (!id_from_bytes(req->run.data, req->run.len, &run))
		return err_say(
		    e, -EINVAL, "the request's run is not an id: it has %zu bytes", req->run.len);
	dir = fd_open_same_mount(
	    m->root_fds[MNT_ROOT__MNT_ROOT_CSI_SOCK], alloc, O_PATH | O_DIRECTORY);
	if (dir < 0 || fstat(dir, &st) < 0)
		return err_set(e, dir < 0 ? dir : -errno, "open the plugin's csi/sock/%s", alloc);
	t.uid = st.st_uid;
	t.gid = st.st_gid;
	if (is_agent(m->args, t.uid, t.gid))
		return err_say(e, -EPERM, "csi/sock/%s belongs to a user of drover's own (%u:%u)",
		    alloc, t.uid, t.gid);
	sock = fd_open_same_mount(dir, "csi.sock", O_PATH);
	if (sock < 0 || fstat(sock, &st) < 0)
		return err_set(
		    e, sock < 0 ? sock : -errno, "open the plugin's csi/sock/%s/csi.sock", alloc);
	if (!S_ISSOCK(st.st_mode))
		return err_say(
		    e, -ENOTSOCK, "the plugin's csi/sock/%s/csi.sock is no socket", alloc);
	(void)snprintf(what, sizeof what, "connect to the plugin of alloc %s", alloc);
	return mnt_child_start(
	    m, p, &run, CONNECT_TIMEOUT_MS, sock, connect_as_owner, &t, on_connected, what, e);
}
