// SPDX-License-Identifier: Apache-2.0
/* lau_runtime.c: the objects that live until the next boot: <rt>, lease page, control socket,
 * cgroups. Runs in: launcher. */
#include <fcntl.h>
#include <libgen.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/lease.h"
#include "common/log.h"
#include "common/path.h"
#include "common/sd.h"
#include "launcher/launcher.h"

#define TASKS_UNIT     "/drover.slice/drover-tasks.service"
#define LEASE_SIZE     4096
#define LISTENER_TRIES 20 /* attempts, 50 ms apart */
#define REMOVE_WAIT_MS                                                                             \
	3000 /* a process that hangs in a file system cannot be killed, so the wait is bounded */

/* This lock keeps agents with different data directories from sharing a runtime directory. */
static int
make_dirs(struct launcher *l, struct err *e)
{
	cleanup_close int fd = -1;
	int r;

	/* The path fits: lau_data.c limits the data directory's length. */
	(void)strcpy(l->rt, l->dev ? l->data : l->config.config->runtime_dir);
	(void)strcat(l->rt, l->dev ? "/rt" : "");
	fd = path_open_owned(l->rt, 0755, e);
	if (fd < 0)
		return err_prefix(e, "runtime directory");
	l->rt_fd = fd_reopen(fd, O_RDONLY | O_DIRECTORY);
	if (l->rt_fd < 0)
		return err_set(e, l->rt_fd, "open %s", l->rt);
	if ((r = lau_lock_take(l->rt_fd, l->rt, e)) < 0)
		return r;
	r = dir_ensure_at(l->rt_fd, "x", 02750, 0, l->users.gid[LAU_USER_DROVER], NULL);
	if (r < 0)
		return err_set(e, r, "make %s/x", l->rt);
	r = dir_ensure_at(l->rt_fd, "netns", 0740, 0, l->users.gid[LAU_USER_DROVER], NULL);
	return r < 0 ? err_set(e, r, "make %s/netns", l->rt) : 0;
}

int
lau_lease_open(struct launcher *l, struct err *e)
{
	union {
		struct lease_page page;
		char bytes[LEASE_SIZE];
	} new = { .page = { .magic = LEASE_MAGIC } };
	cleanup_close int fd = openat(l->rt_fd, "lease", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
	struct lease_page page;
	struct stat st;
	int r;

	if (fd < 0 && errno != ENOENT && errno != ELOOP)
		return err_set(e, -errno, "open %s/lease", l->rt);
	/* A page of this boot is never changed by a start; otherwise a crash loop would extend the
	 * lease for ever. */
	if (fd < 0 || fstat(fd, &st) < 0 || st.st_size != LEASE_SIZE || lease_read(fd, &page) < 0) {
		new.page.started = clock_boot_ns();
		r = boot_id_read(new.page.boot_id);
		if (r == 0)
			r = lau_file_replace(l->rt_fd, "lease", 0644, &new, sizeof new);
		if (r < 0)
			return err_set(e, r, "write %s/lease", l->rt);
		close_p(&fd);
		fd = openat(l->rt_fd, "lease", O_RDWR | O_NOFOLLOW | O_CLOEXEC);
		if (fd < 0)
			return err_set(e, -errno, "open %s/lease", l->rt);
	}
	close_p(&l->lease_fd);
	l->lease_fd = steal_fd(&fd);
	return 0;
}

static bool
somebody_listens(const struct sockaddr_un *at)
{
	cleanup_close int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	return fd < 0 || connect(fd, (const struct sockaddr *)at, sizeof *at) == 0 ||
	       errno == EAGAIN;
}

/* Removes a stale socket, on which no process listens. */
static int
remove_stale(
    int dir_fd, const char *name, const struct sockaddr_un *at, const char *path, struct err *e)
{
	struct stat st;

	if (fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return errno == ENOENT ? 0 : err_set(e, -errno, "check %s", path);
	if (!S_ISSOCK(st.st_mode))
		return err_say(e, -EEXIST, "%s exists and is not a socket", path);
	/* A supervisor that is killed loses the lock before it closes its listening socket. */
	for (int tries = 0; somebody_listens(at); tries++) {
		if (tries == LISTENER_TRIES)
			return err_say(e, -EADDRINUSE, "another agent listens on %s", path);
		(void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
	}
	if (unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the stale %s", path);
	return 0;
}

/* Binds through the directory's descriptor, because sun_path holds 108 bytes and the path may be
 * longer. */
static int
bind_socket(struct launcher *l, struct err *e)
{
	char dir[CONFIG_PATH_SIZE], base[CONFIG_PATH_SIZE];
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	cleanup_close int dir_fd = -1, fd = -1;
	const char *name;
	mode_t old;
	int r;

	(void)strcpy(dir, l->socket);
	(void)strcpy(base, l->socket);
	name = basename(base);
	dir_fd = path_open_owned(dirname(dir), 0, e);
	if (dir_fd < 0)
		return err_prefix(e, "open the directory of the control socket");
	r = snprintf(at.sun_path, sizeof at.sun_path, "/proc/self/fd/%d/%s", dir_fd, name);
	if ((size_t)r >= sizeof at.sun_path)
		return err_set(e, -ENAMETOOLONG, "bind the control socket %s", l->socket);
	r = remove_stale(dir_fd, name, &at, l->socket, e);
	if (r < 0)
		return r;
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	old = umask(l->dev ? 0177 : 0117);
	r = fd < 0 || bind(fd, (struct sockaddr *)&at, sizeof at) < 0 ? -errno : 0;
	(void)umask(old);
	if (r < 0 || listen(fd, SOMAXCONN) < 0)
		return err_set(e, r < 0 ? r : -errno, "listen on %s", l->socket);
	if (!l->dev &&
	    fchownat(dir_fd, name, 0, l->users.gid[LAU_USER_DROVER], AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(e, -errno, "give %s to group drover", l->socket);
	l->listen_fd = steal_fd(&fd);
	l->listen_is_ours = true;
	log_info("the control socket is unix://%s", l->socket);
	return 0;
}

static int
make_socket(struct launcher *l, struct err *e)
{
	int r = listen_fds_take(&l->listen_fd, l->passed_fds, e), n;

	if (r < 0 || l->listen_fd >= 0)
		return r;
	n = l->socket_option ? snprintf(l->socket, sizeof l->socket, "%s", l->socket_option)
			     : snprintf(l->socket, sizeof l->socket, "%s/drover.sock", l->rt);
	if (n <= 0 || (size_t)n >= sizeof l->socket)
		return err_say(e, -ENAMETOOLONG,
		    "the control socket's path must have 1 to %zu bytes", sizeof l->socket - 1);
	return bind_socket(l, e);
}

int
lau_socket_renew(struct launcher *l, struct err *e)
{
	struct pollfd p = { .fd = l->listen_fd, .events = POLLRDHUP };
	int old = l->listen_fd, r;

	if (poll(&p, 1, 0) <= 0)
		return 0;
	if (!l->listen_is_ours) {
		log_error("the control socket was shut down and refuses all connections: run "
			  "systemctl restart drover.socket");
		return 0;
	}
	log_warn("the control socket was shut down: binding it again");
	r = bind_socket(l, e); /* changes listen_fd if it succeeds */
	if (r == 0)
		(void)close(old);
	return r;
}

static bool
has_address(int fd, const struct config_listen *at)
{
	struct sockaddr_storage name = { 0 };
	socklen_t len = sizeof name;

	return getsockname(fd, (struct sockaddr *)&name, &len) == 0 &&
	       memcmp(&name, at->sockaddr, sizeof at->sockaddr) == 0;
}

/* Returns a copy of the TCP socket that systemd passed for this address, or -1. */
static int
find_passed(const struct launcher *l, const struct config_listen *at)
{
	for (size_t i = 0; i < ELEMENTSOF(l->passed_fds); i++)
		if (has_address(l->passed_fds[i], at))
			return fcntl(l->passed_fds[i], F_DUPFD_CLOEXEC, 0);
	return -1;
}

static void
warn_of_unused(const struct launcher *l, const struct config_listen listen[LISTEN_USES])
{
	for (size_t i = 0; i < ELEMENTSOF(l->passed_fds); i++)
		if (l->passed_fds[i] >= 0 && !has_address(l->passed_fds[i], &listen[LISTEN_API]) &&
		    !has_address(l->passed_fds[i], &listen[LISTEN_HEALTH]))
			log_warn("nobody answers at a TCP socket that systemd holds: its address "
				 "is neither health.address nor that of addresses.http and "
				 "ports.http");
}

static int
listen_at(const struct launcher *l, const struct config_listen *at, struct err *e)
{
	cleanup_close int fd = find_passed(l, at);
	bool passed = fd >= 0;

	if (!passed)
		fd = socket(at->family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (fd < 0 || fcntl(fd, F_SETFL, O_NONBLOCK) < 0 ||
	    setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int)) < 0 ||
	    (!passed && (setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &(int){ 1 }, sizeof(int)) < 0 ||
			    bind(fd, (const struct sockaddr *)at->sockaddr, at->len) < 0 ||
			    listen(fd, SOMAXCONN) < 0)))
		return err_set(e, -errno, "listen on %s", at->text);
	log_info("TCP connections to %s are accepted%s", at->text,
	    passed ? ", on the socket that systemd holds" : "");
	return steal_fd(&fd);
}

/* The old sockets stay unless all new ones can be had: an address belongs to the configuration that
 * says who may use it. */
int
lau_listen(struct launcher *l, const struct agent_config *config, struct err *e)
{
	int fds[LISTEN_USES], r = 0;

	for (int i = 0; i < LISTEN_USES; i++) {
		const struct config_listen *at = &config->listen[i];
		int fd = -1;

		if (r == 0 && at->len > 0 &&
		    memcmp(l->tcp_at[i], at->sockaddr, sizeof at->sockaddr) != 0 &&
		    (fd = listen_at(l, at, e)) < 0)
			r = fd;
		fds[i] = fd;
	}
	for (int i = 0; i < LISTEN_USES; i++) {
		const uint8_t *sockaddr = config->listen[i].sockaddr;

		if (r == 0 && memcmp(l->tcp_at[i], sockaddr, sizeof l->tcp_at[i]) != 0) {
			close_p(&l->tcp_fds[i]);
			l->tcp_fds[i] = steal_fd(&fds[i]);
			memcpy(l->tcp_at[i], sockaddr, sizeof l->tcp_at[i]);
		}
		close_p(&fds[i]);
	}
	if (r == 0)
		warn_of_unused(l, config->listen);
	return r;
}

/* Checks whether the unit exists that keeps tasks apart from the agent's own unit. */
static bool
has_tasks_unit(void)
{
	static const char *const roots[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified",
		"/sys/fs/cgroup/systemd" };
	char path[128];

	for (size_t i = 0; i < ELEMENTSOF(roots); i++) {
		(void)snprintf(path, sizeof path, "%s" TASKS_UNIT, roots[i]);
		if (access(path, F_OK) == 0)
			return true;
	}
	return false;
}

static int
make_cgroups(struct launcher *l, struct err *e)
{
	const char *parent = l->config.policy->cgroup_parent;
	bool systemd = !l->dev && getenv("NOTIFY_SOCKET");
	struct cgroup c;
	char names[64];
	int n, r;

	if (!l->dev && parent[0])
		n = snprintf(l->cgroup, sizeof l->cgroup, "/%s/%s", parent + strspn(parent, "/"),
		    l->instance);
	else if (systemd && has_tasks_unit())
		n = snprintf(l->cgroup, sizeof l->cgroup, TASKS_UNIT "/%s", l->instance);
	else
		n = snprintf(l->cgroup, sizeof l->cgroup, "/drover-%s", l->instance);
	if ((size_t)n >= sizeof l->cgroup || strstr(l->cgroup, "/../"))
		return err_say(
		    e, -EINVAL, "cgroup_parent %s is too long or contains \"..\"", parent);
	if (systemd && !parent[0] && !has_tasks_unit())
		log_warn("drover-tasks.service is not running: the cgroups of tasks are in %s",
		    l->cgroup);
	r = cgroup_open(&c, l->cgroup, true, e);
	if (r == 0 && c.missing) {
		cgroup_missing_names(&c, names, sizeof names);
		log_warn("missing cgroup controllers: %s; their limits are not enforced", names);
	}
	if (r == 0)
		r = cgroup_guard(&c, l->users.gid[LAU_USER_DROVER], e);
	if (r == 0 &&
	    ((l->cgroup_fd = openat(c.tasks[CGROUP_V2], CGROUP_LOCK, O_WRONLY | O_CLOEXEC)) < 0 ||
		flock(l->cgroup_fd, LOCK_SH | LOCK_NB) < 0))
		r = err_set(e, -errno, "lock cgroup %s", l->cgroup);
	cgroup_close(&c);
	return r;
}

int
lau_runtime_make(struct launcher *l, struct err *e)
{
	int r = make_dirs(l, e);

	/* Objects that outlive a launcher whose start fails are made last. */
	if (r < 0 || (r = lau_lease_open(l, e)) < 0 || (r = make_socket(l, e)) < 0)
		return r;
	return make_cgroups(l, e);
}

bool
lau_runtime_is_idle(const struct launcher *l)
{
	struct cgroup c;
	bool idle;

	if (!l->cgroup[0])
		return false;
	idle = cgroup_open(&c, l->cgroup, false, NULL) == 0 &&
	       cgroup_is_populated(c.exec[CGROUP_V2]) == 0 &&
	       cgroup_is_populated(c.tasks[CGROUP_V2]) == 0 &&
	       (!(c.in_v2 & CGROUP_BIT(CGROUP_CPUSET)) ||
		   cgroup_is_populated(c.tasks[CGROUP_CPUSET]) == 0);
	cgroup_close(&c);
	return idle;
}

void
lau_runtime_undo(struct launcher *l)
{
	struct err e = { 0 };
	int r;

	if (l->listen_is_ours && unlink(l->socket) < 0 && errno != ENOENT)
		log_warn("remove %s: %s", l->socket, strerrordesc_np(errno));
	if (!l->dev)
		return;
	if (l->cgroup[0] && cgroup_remove(l->cgroup, REMOVE_WAIT_MS, &e) < 0)
		log_warn("%s", e.msg);
	r = l->rt_fd >= 0 ? tree_remove_at(l->data_fd, "rt") : 0;
	if (r < 0)
		log_warn("remove %s: %s", l->rt, strerrordesc_np(-r));
}
