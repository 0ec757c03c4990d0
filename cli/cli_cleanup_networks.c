// SPDX-License-Identifier: Apache-2.0
/*
 * cli_cleanup_networks.c: drover cleanup: networks of allocations, whose addresses and rules only
 * their CNI plugins can remove. Runs in: cli, as root, and drover-network-helper.
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli_cleanup.h"
#include "common/cgroup.h"
#include "common/cleanup.h"
#include "common/fd.h"
#include "common/id.h"
#include "common/mem.h"
#include "proto/network_config.h"

#define SUFFIX        ".json"   /* of the file that says what a network was made with */
#define FILE_MAX      (4 << 20) /* bytes: as drover-network-helper */
#define CGROUP        "/drover-cleanup"
#define CGROUP_END_MS 2000
#define ABOVE         16 /* the numbers that drover-network-helper has its descriptors at */

struct places {
	struct cgroup cgroup;
	int fds[NET_CLEANUP_FDS]; /* <rt>/netns, the machine's network, the cgroup of plugins */
	char program[PATH_MAX];
};

static int
open_places(struct places *p, const char *netns, struct err *e)
{
	int opened[NET_CLEANUP_FDS] = { -1, -1, -1 };
	int r = cgroup_open(&p->cgroup, CGROUP, true, e);

	if (r < 0 ||
	    (r = cli_find_program("drover-network-helper", p->program, sizeof p->program, e)) < 0)
		return r;
	opened[0] = open(netns, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	opened[1] = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
	opened[2] = p->cgroup.exec[CGROUP_V2];
	for (size_t i = 0; i < NET_CLEANUP_FDS; i++) {
		p->fds[i] = fcntl(opened[i], F_DUPFD_CLOEXEC, ABOVE);
		r = p->fds[i] < 0 && r == 0 ? err_set(e, -errno, "open %s", netns) : r;
	}
	close_p(&opened[0]);
	close_p(&opened[1]);
	return r;
}

static void
close_places(struct places *p)
{
	for (size_t i = 0; i < NET_CLEANUP_FDS; i++)
		close_p(&p->fds[i]);
	cgroup_close(&p->cgroup);
	(void)cgroup_remove(CGROUP, CGROUP_END_MS, NULL);
}

static int
wait_for(pid_t pid, int answer, struct err *e)
{
	char why[ERR_MSG_SIZE];
	ssize_t n = fd_read_full(answer, why, sizeof why - 1);
	int status = -1;

	why[n > 0 ? n : 0] = '\0';
	if (waitpid(pid, &status, 0) == pid && status == 0)
		return 0;
	return err_say(e, -EIO, "%s", n > 0 ? why : "drover-network-helper failed");
}

/* Returns the directories in which the plugins that made a network were looked for, which its file
 * has. The caller frees the result. A file without them is of an older version; what is wrong with
 * one that cannot be read is said by drover-network-helper. */
static char *
read_cni_path(const struct places *p, const char *alloc)
{
	cleanup_free char *name = mem_printf("%s" SUFFIX, alloc);
	cleanup_free char *text = NULL;
	ssize_t n = fd_read_file(p->fds[0], name, FILE_MAX, &text);
	cleanup_json json_t *file =
	    n < 0 ? NULL : json_loadb(text, (size_t)n, JSON_REJECT_DUPLICATES, NULL);
	const char *path = json_string_value(json_object_get(file, "cni_path"));

	return mem_strdup(path ?: CNI_PATH_DEFAULT);
}

static int
remove_network(const struct places *p, const char *runtime_dir, const char *alloc, struct err *e)
{
	cleanup_free char *cni_path = read_cni_path(p, alloc);
	char *argv[] = { (char *)(uintptr_t)p->program, (char[]){ NET_CLEANUP_WORD },
		(char *)(uintptr_t)runtime_dir, cni_path, (char *)(uintptr_t)alloc, NULL };
	char *envp[] = { NULL };
	posix_spawn_file_actions_t actions;
	cleanup_close int in = -1;
	int pair[2], r;
	pid_t pid;

	if (pipe2(pair, O_CLOEXEC) < 0)
		return err_set(e, -errno, "make a pipe");
	in = pair[0];
	(void)posix_spawn_file_actions_init(&actions);
	(void)posix_spawn_file_actions_adddup2(&actions, pair[1], STDOUT_FILENO);
	for (int i = 0; i < NET_CLEANUP_FDS; i++)
		(void)posix_spawn_file_actions_adddup2(
		    &actions, p->fds[i], NET_CLEANUP_FIRST_FD + i);
	r = posix_spawn(&pid, p->program, &actions, NULL, argv, envp);
	(void)posix_spawn_file_actions_destroy(&actions);
	(void)close(pair[1]);
	return r == 0 ? wait_for(pid, in, e) : err_set(e, -r, "run %s", p->program);
}

bool
cleanup_networks(struct cleanup *c, const char *runtime_dir)
{
	cleanup_free char *netns = mem_printf("%s/netns", runtime_dir);
	cleanup_free char *pattern = mem_printf("%s/*" SUFFIX, netns);
	struct places p = { .fds = { -1, -1, -1 } };
	struct err e = { 0 };
	glob_t found = { 0 };
	bool all = true;
	int r = 0;

	if (glob(pattern, 0, NULL, &found) == 0 && !c->dry_run)
		r = open_places(&p, netns, &e);
	for (size_t i = 0; i < found.gl_pathc; i++) {
		char *alloc = strrchr(found.gl_pathv[i], '/') + 1;
		struct id id;

		alloc[strlen(alloc) - strlen(SUFFIX)] = '\0';
		if (!id_from_uuid(alloc, &id))
			continue;
		if (!c->dry_run && p.fds[0] >= 0)
			r = remove_network(&p, runtime_dir, alloc, &e);
		cleanup_did(c, "network", alloc, r, &e);
		all = all && r == 0;
	}
	if (!all)
		cleanup_say(c, "runtime directory", runtime_dir, "kept",
		    "it says how networks are removed: mend what their reasons name, then run this "
		    "command again");
	if (found.gl_pathc > 0 && !c->dry_run)
		close_places(&p);
	globfree(&found);
	return all;
}
