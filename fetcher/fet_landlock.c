// SPDX-License-Identifier: Apache-2.0
/* fet_landlock.c: what the fetcher may use of the machine's files. Runs in: fetcher, before its
 * drop. */
#include <errno.h>
#include <fcntl.h>
#include <linux/landlock.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "fetcher/fet.h"
#include "proto/agent_config.h"

#define READ_FILE (LANDLOCK_ACCESS_FS_READ_FILE)
#define READ      (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define RUN       (READ | LANDLOCK_ACCESS_FS_EXECUTE)
#define WRITE                                                                                      \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                         \
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)
/* Everything of version 2: what no rule grants is denied. Version 1 cannot permit a rename from one
 * directory to another. */
#define VERSION 2
#define ALL     ((LANDLOCK_ACCESS_FS_REFER << 1) - 1)

/* Programs, libraries, names of hosts and users, certificates, known hosts. */
static const struct place {
	const char *path;
	uint64_t access;
} places[] = {
	{ "/bin", RUN },
	{ "/lib", RUN },
	{ "/lib64", RUN },
	{ "/usr/bin", RUN },
	{ "/usr/lib", RUN },
	{ "/usr/lib64", RUN },
	{ "/usr/libexec", RUN },
	{ "/usr/local/bin", RUN },
	{ "/usr/share/ca-certificates", READ },
	{ "/usr/share/git-core", READ },
	{ "/usr/local/share/ca-certificates", READ },
	{ "/etc/ca-certificates", READ },
	{ "/etc/ssl/certs", READ },
	{ "/etc/ssl/openssl.cnf", READ_FILE },
	{ "/etc/gnutls", READ },
	{ "/etc/gai.conf", READ_FILE },
	{ "/etc/host.conf", READ_FILE },
	{ "/etc/hosts", READ_FILE },
	{ "/etc/nsswitch.conf", READ_FILE },
	{ "/etc/resolv.conf", READ_FILE },
	{ "/etc/services", READ_FILE },
	{ "/etc/ld.so.cache", READ_FILE },
	{ "/etc/passwd", READ_FILE },
	{ "/etc/group", READ_FILE },
	{ "/etc/gitconfig", READ_FILE },
	{ "/etc/ssh", READ }, /* ssh_known_hosts, also if it is made or replaced later */
	{ "/run/systemd/resolve", READ },
	{ "/run/resolvconf", READ },
	{ "/dev/null", READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE },
	{ "/dev/urandom", READ_FILE },
};

static int
add_rule(int ruleset, int fd, uint64_t access)
{
	const struct landlock_path_beneath_attr rule = { .allowed_access = access,
		.parent_fd = fd };

	return syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &rule, 0) < 0
		   ? -errno
		   : 0;
}

static int
add_place(int ruleset, const char *path, uint64_t access, struct err *e)
{
	cleanup_close int fd = open(path, O_PATH | O_CLOEXEC);
	int r = fd < 0 ? -errno : add_rule(ruleset, fd, access);

	if (r == -ENOENT || r == -ENOTDIR)
		return 0;
	return r < 0 ? err_set(e, r, "permit the fetcher to use %s", path) : 0;
}

/* The words of filesystem_isolation_extra_paths are "d:rx:/opt/git", which the configuration's
 * reader has checked. */
static int
add_extra(int ruleset, const char *word, struct err *e)
{
	const char *mode = word + 2, *path = strchr(mode, ':') + 1;
	bool dir = word[0] == 'd';
	uint64_t access = 0;

	for (; *mode != ':'; mode++)
		access |= *mode == 'r'   ? (dir ? READ : READ_FILE)
			  : *mode == 'x' ? LANDLOCK_ACCESS_FS_EXECUTE
			  : *mode == 'w' ? LANDLOCK_ACCESS_FS_WRITE_FILE
			  : dir          ? WRITE
					 : 0;
	return add_place(ruleset, path, access, e);
}

int
fet_landlock(const struct agent_config *config, int staging_fd, struct err *e)
{
	const struct landlock_ruleset_attr all = { .handled_access_fs = ALL };
	cleanup_close int ruleset = -1;
	int r;

	if (config->artifact.no_isolation)
		return 0;
	if (syscall(SYS_landlock_create_ruleset, NULL, 0, LANDLOCK_CREATE_RULESET_VERSION) <
	    VERSION) {
		log_info("this kernel has no Landlock, so the fetcher can read what its user can");
		return 0;
	}
	ruleset = (int)syscall(SYS_landlock_create_ruleset, &all, sizeof all, 0);
	if (ruleset < 0)
		return err_set(e, -errno, "make the fetcher's Landlock rules");
	r = add_rule(ruleset, staging_fd, READ | WRITE);
	if (r < 0)
		return err_set(e, r, "permit the fetcher to use its staging directory");
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
		r = add_place(ruleset, places[i].path, places[i].access, e);
	for (size_t i = 0; r == 0 && i < config->artifact.n_extra_paths; i++)
		r = add_extra(ruleset, config->artifact.extra_paths[i], e);
	if (r == 0 && syscall(SYS_landlock_restrict_self, ruleset, 0) < 0)
		r = err_set(e, -errno, "restrict the fetcher by Landlock");
	return r;
}
