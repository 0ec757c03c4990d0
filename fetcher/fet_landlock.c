// SPDX-License-Identifier: Apache-2.0
/* fet_landlock.c: what the fetcher may use of the machine's files. Runs in: fetcher, before its
 * drop; each worker, with fewer files, after it. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/landlock.h"
#include "fetcher/fet.h"
#include "proto/artifact_config.h"

/* Files that git and ssh read. */
static const struct place {
	const char *path;
	uint64_t access;
} places[] = {
	{ "/usr/share/git-core", LANDLOCK_READ }, /* git's templates of repositories */
	{ "/etc/gitconfig", LANDLOCK_READ_FILE },
	{ "/etc/ssh", LANDLOCK_READ }, /* ssh_known_hosts, also if it is made or replaced later */
};

/* The words of filesystem_isolation_extra_paths are "d:rx:/opt/git", which the configuration's
 * reader has checked. */
static int
permit_extra(int rules, const char *word, struct err *e)
{
	const char *mode = word + 2, *path = strchr(mode, ':') + 1;
	bool dir = word[0] == 'd';
	uint64_t access = 0;

	for (; *mode != ':'; mode++)
		access |= *mode == 'r'   ? (dir ? LANDLOCK_READ : LANDLOCK_READ_FILE)
			  : *mode == 'x' ? LANDLOCK_ACCESS_FS_EXECUTE
			  : *mode == 'w' ? LANDLOCK_ACCESS_FS_WRITE_FILE
			  : dir          ? LANDLOCK_WRITE
					 : 0;
	return landlock_permit(rules, path, access, e);
}

int
fet_landlock(const struct config_artifact *config, int dir_fd, struct err *e)
{
	cleanup_close int rules = -1;
	int r;

	if (config->no_isolation)
		return 0;
	rules = landlock_new(e);
	if (rules < 0)
		return rules == -ENOSYS ? 1 : rules;
	r = landlock_permit_fd(rules, dir_fd, LANDLOCK_READ | LANDLOCK_WRITE, e);
	if (r == 0)
		r = landlock_permit_network_programs(rules, e);
	for (size_t i = 0; r == 0 && i < ELEMENTSOF(places); i++)
		r = landlock_permit(rules, places[i].path, places[i].access, e);
	for (size_t i = 0; r == 0 && i < config->n_extra_paths; i++)
		r = permit_extra(rules, config->extra_paths[i], e);
	for (size_t i = 0; r == 0 && i < config->n_file_dirs; i++)
		r = landlock_permit(rules, config->file_dirs[i], LANDLOCK_READ, e);
	return r == 0 ? landlock_enforce(rules, e) : r;
}
