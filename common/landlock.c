// SPDX-License-Identifier: Apache-2.0
/* landlock.c: Landlock's three system calls, and rules that several processes need. Runs in:
 * fetcher, image-fetcher, before their drop; workers of the fetcher. */
#include "common/landlock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"

/* Everything of version 2: what no rule grants is denied. Version 1 cannot permit a rename from one
 * directory to another. */
#define VERSION 2
#define ALL     ((LANDLOCK_ACCESS_FS_REFER << 1) - 1)

static const struct place {
	const char *path;
	uint64_t access;
} network_programs[] = {
	{ "/bin", LANDLOCK_RUN },
	{ "/lib", LANDLOCK_RUN },
	{ "/lib64", LANDLOCK_RUN },
	{ "/usr/bin", LANDLOCK_RUN },
	{ "/usr/lib", LANDLOCK_RUN },
	{ "/usr/lib64", LANDLOCK_RUN },
	{ "/usr/libexec", LANDLOCK_RUN },
	{ "/usr/local/bin", LANDLOCK_RUN },
	{ "/usr/share/ca-certificates", LANDLOCK_READ },
	{ "/usr/local/share/ca-certificates", LANDLOCK_READ },
	{ "/etc/ca-certificates", LANDLOCK_READ },
	{ "/etc/ssl/certs", LANDLOCK_READ },
	{ "/etc/ssl/openssl.cnf", LANDLOCK_READ_FILE },
	{ "/etc/gnutls", LANDLOCK_READ },
	{ "/etc/gai.conf", LANDLOCK_READ_FILE },
	{ "/etc/host.conf", LANDLOCK_READ_FILE },
	{ "/etc/hosts", LANDLOCK_READ_FILE },
	{ "/etc/nsswitch.conf", LANDLOCK_READ_FILE },
	{ "/etc/resolv.conf", LANDLOCK_READ_FILE },
	{ "/etc/services", LANDLOCK_READ_FILE },
	{ "/etc/ld.so.cache", LANDLOCK_READ_FILE },
	{ "/etc/passwd", LANDLOCK_READ_FILE },
	{ "/etc/group", LANDLOCK_READ_FILE },
	{ "/run/systemd/resolve", LANDLOCK_READ },
	{ "/run/resolvconf", LANDLOCK_READ },
	{ "/dev/null", LANDLOCK_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE },
	{ "/dev/urandom", LANDLOCK_READ_FILE },
};

int
landlock_new(struct err *e)
{
	const struct landlock_ruleset_attr all = { .handled_access_fs = ALL };
	int fd;

	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) <
	    VERSION)
		return -ENOSYS;
	fd = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	return fd < 0 ? err_set(e, -errno, "make Landlock rules") : fd;
}

int
landlock_permit_fd(int rules_fd, int fd, uint64_t access, struct err *e)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = access,
		.parent_fd = fd };

	return syscall(SYS_landlock_add_rule, rules_fd, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		   ? err_set(e, -errno, "add a Landlock rule")
		   : 0;
}

int
landlock_permit(int rules_fd, const char *path, uint64_t access, struct err *e)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == EACCES))
		return 0;
	if (fd < 0)
		return err_set(e, -errno, "open %s", path);
	return landlock_permit_fd(rules_fd, fd, access, e);
}

int
landlock_permit_network_programs(int rules_fd, struct err *e)
{
	int r = 0;

	for (size_t i = 0; r == 0 && i < ELEMENTSOF(network_programs); i++)
		r = landlock_permit(
		    rules_fd, network_programs[i].path, network_programs[i].access, e);
	return r;
}

int
landlock_enforce(int rules_fd, struct err *e)
{
	return syscall(SYS_landlock_restrict_self, rules_fd, 0) < 0
		   ? err_set(e, -errno, "enforce Landlock rules")
		   : 0;
}
