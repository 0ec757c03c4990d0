// SPDX-License-Identifier: Apache-2.0
/*
 * mnt_connect.c: connects to a plugin's socket. Runs in: mount-helper, as root.
 *
 * The socket lies in a directory of the plugin's user, so nothing relies on its name: it is opened
 * O_PATH, without links and in the mount of the data directory, and connected to through that
 * descriptor. A non-blocking connect(2) never waits for the listener: a full queue is EAGAIN. As
 * root it may reach a socket that the plugin's user could not (a hard link to somebody else's), so
 * the kernel is asked who listens before anything is sent or handed on.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/fd.h"
#include "mount-helper/mnt.h"

/* Opens the socket csi.sock in an alloc's directory with O_PATH. */
static int
open_socket(const struct mnt *m, const char *alloc, struct err *e)
{
	cleanup_close int dir =
	    fd_open_same_mount(m->root_fds[MNT_PLACE_SOCK], alloc, O_PATH | O_DIRECTORY);
	cleanup_close int sock = dir < 0 ? -1 : fd_open_same_mount(dir, "csi.sock", O_PATH);
	struct stat st;

	if (dir < 0)
		return err_set(e, dir, "open the plugin's csi/sock/%s", alloc);
	if (sock < 0 || fstat(sock, &st) < 0)
		return err_set(
		    e, sock < 0 ? sock : -errno, "open the plugin's csi/sock/%s/csi.sock", alloc);
	if (!S_ISSOCK(st.st_mode))
		return err_say(
		    e, -ENOTSOCK, "the plugin's csi/sock/%s/csi.sock is not a socket", alloc);
	return steal_fd(&sock);
}

/* Opens, with O_PATH, the socket of a plugin that the configuration names. It belongs to root and
 * no link leads to it, so that no user can put another socket in its place. */
static int
open_configured(const struct mnt *m, const char *plugin, struct err *e)
{
	const struct config_csi_plugin *c = m->policy->csi_plugins;
	cleanup_close int root = -1, sock = -1;
	struct stat st;
	uint32_t i = 0;

	while (i < m->policy->n_csi_plugins && strcmp(c[i].id, plugin) != 0)
		i++;
	if (i == m->policy->n_csi_plugins)
		return err_say(e, -EPERM, "the configuration has no csi_plugin \"%s\"", plugin);
	root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	sock = root < 0 ? -errno : fd_open_beneath(root, c[i].socket + 1, O_PATH, 0);
	if (sock < 0)
		return err_say(e, sock, "open %s: %s", c[i].socket,
		    sock == -ELOOP ? "a symbolic link leads to it" : strerror(-sock));
	if (fstat(sock, &st) < 0 || !S_ISSOCK(st.st_mode) || st.st_uid != 0)
		return err_say(e, -ENOTSOCK, "%s is not a socket of root", c[i].socket);
	return steal_fd(&sock);
}

static int
connect_to(int socket_fd, struct err *e)
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

/* Any process of the plugin's user could have made this name, so the process that called listen()
 * must be in the cgroup of the plugin's run. */
static int
check_listener(const struct mnt *m, const struct id *run, int fd, struct err *e)
{
	struct ucred peer = { 0 };
	socklen_t len = sizeof peer;
	char hex[ID_HEX_SIZE];

	id_to_hex(run, hex);
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) < 0)
		return err_set(e, -errno, "find the process that listens on csi.sock");
	if (peer.pid <= 0 || !cgroup_has_pid(m->args->cgroup, hex, peer.pid))
		return err_say(e, -EPERM,
		    "csi.sock is not the plugin's: process %d listens, which is not of run %s",
		    (int)peer.pid, hex);
	return 0;
}

int
mnt_on_plugin_connect(struct mnt *m, const struct mnt_plugin_connect_req *req,
    struct mnt_plugin_connect_rep *rep, int *ret_fd, struct err *e)
{
	cleanup_close int sock = -1, fd = -1;
	char alloc[ID_UUID_SIZE];
	int r;

	if (req->plugin[0] == '\0' && (r = id_alloc_read(&req->alloc, alloc, e)) < 0)
		return r;
	if (req->plugin[0] == '\0' && id_is_zero(&req->run))
		return err_say(e, -EINVAL, "the request has no run id");
	sock = req->plugin[0] ? open_configured(m, req->plugin, e) : open_socket(m, alloc, e);
	if (sock < 0)
		return sock;
	fd = connect_to(sock, e);
	if (fd < 0)
		return fd;
	if (req->plugin[0] == '\0' && (r = check_listener(m, &req->run, fd, e)) < 0)
		return r;
	*ret_fd = steal_fd(&fd);
	return 0;
}
