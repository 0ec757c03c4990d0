// SPDX-License-Identifier: Apache-2.0
/* net_namespace.c: makes and removes network namespaces, which a mount keeps without a process.
 * Runs in: a worker of network-helper, as root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/nsfs.h>
#include <net/if.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/crash.h"
#include "common/fd.h"
#include "common/net_sysctl.h"
#include "network-helper/net.h"

bool
net_namespace_exists(const char *alloc)
{
	cleanup_close int fd = fd_open_beneath(NET_FD_DIR, alloc, O_RDONLY | O_NOFOLLOW, 0);

	return fd >= 0 && ioctl(fd, NS_GET_NSTYPE) == CLONE_NEWNET;
}

static int
set_loopback_up(void)
{
	struct ifreq req = { .ifr_name = "lo", .ifr_flags = IFF_UP };
	cleanup_close int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	return fd < 0 || ioctl(fd, SIOCSIFFLAGS, &req) < 0 ? -errno : 0;
}

/* As Docker does: root of a container has no privilege over this namespace, which other containers
 * join too. So everybody in it can use each port, and ping. */
static int
set_open(void)
{
	int r = fd_write_file(AT_FDCWD, "/proc/sys/net/ipv4/ip_unprivileged_port_start", "0");

	return r < 0
		   ? r
		   : fd_write_file(AT_FDCWD, "/proc/sys/net/ipv4/ping_group_range", "0 2147483647");
}

/* A bridge without IPv6 addresses would still have those of the link, and obey router
 * advertisements (CVE-2024-32473). The plugins of other networks decide that themselves. */
static void
set_ipv6(const struct net_job *job)
{
	if (job->kind == NET_KIND_BRIDGE && !net_cni->subnet6[0])
		(void)fd_write_file(AT_FDCWD, "/proc/sys/net/ipv6/conf/default/disable_ipv6", "1");
}

/* Sets what the job wants, in the namespace that this process is in: root of a container has no
 * privilege over it. Returns 0 or -errno with *e. */
static int
set_wanted(const char *lines, struct err *e)
{
	char text[NET_SYSCTL_SIZE], path[NET_SYSCTL_SIZE + 16], *rest = text, *name;
	int r = 0;

	(void)strcpy(text, lines);
	while (r == 0 && (name = strsep(&rest, "\n")) && *name) {
		char *value = strchrnul(name, '=');

		value += *value ? (*value = '\0', 1) : 0;
		r = net_sysctl_is_allowed(name) ? 0 : -EPERM;
		(void)snprintf(path, sizeof path, "/proc/sys/%s", name);
		for (char *c = path; (c = strchr(c, '.'));)
			*c = '/';
		if (r < 0 || (r = fd_write_file(AT_FDCWD, path, value)) < 0)
			(void)err_set(e, r,
			    "config.sysctl of a task: set %s = \"%s\" in its network, where not "
			    "every setting of the machine exists",
			    name, value);
	}
	return r;
}

/* Between the two changes of namespace, so it does not return early. The namespace gets its name
 * when it is complete. */
static int
mount_new(const struct net_job *job, int at, struct err *e)
{
	char path[32];
	int r;

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d", at);
	if (unshare(CLONE_NEWNET) < 0)
		return -errno;
	set_ipv6(job);
	if ((r = set_loopback_up()) == 0 && (r = set_open()) == 0 &&
	    (r = set_wanted(job->sysctls, e)) == 0 &&
	    mount("/proc/self/ns/net", path, NULL, MS_BIND, NULL) < 0)
		r = -errno;
	return setns(NET_FD_HOST, CLONE_NEWNET) < 0 ? -errno : r;
}

int
net_namespace_make(const struct net_job *job, struct err *e)
{
	cleanup_close int fd = -1;
	int r;

	if (net_namespace_exists(job->alloc))
		return 0;
	/* A file without a namespace is what a killed helper left. */
	fd = openat(NET_FD_DIR, job->alloc, O_RDONLY | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0400);
	if (fd < 0)
		return err_set(e, -errno, "make the name of a network namespace");
	CRASH_POINT(NET_AFTER_NAME);
	r = mount_new(job, fd, e);
	CRASH_POINT(NET_AFTER_NAMESPACE);
	return r < 0 && !e->code ? err_set(e, r, "make a network namespace") : r;
}

int
net_namespace_remove(const char *alloc, struct err *e)
{
	char path[ID_UUID_SIZE + 32];

	(void)snprintf(path, sizeof path, "/proc/self/fd/%d/%s", NET_FD_DIR, alloc);
	while (umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) == 0)
		;
	if (errno != EINVAL && errno != ENOENT)
		return err_set(e, -errno, "unmount a network namespace");
	CRASH_POINT(NET_AFTER_UNMOUNT);
	if (unlinkat(NET_FD_DIR, alloc, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the name of a network namespace");
	CRASH_POINT(NET_AFTER_DROP);
	return 0;
}
