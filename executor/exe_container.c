// SPDX-License-Identifier: Apache-2.0
/* exe_container.c: what only root of the machine can do for a container: mounts with other ids, and
 * the maps of its user namespace. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clone.h"
#include "common/crash.h"
#include "common/fd.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"
#include "proto/container_ids.h"

#define SESSION_MS 10000

struct exe_inside exe_inside;

/* The maps of ids from a user namespace to the machine, by what has the ids there. */
enum id_map {
	IDS_OWN,    /* 0 to 65535: of its processes, and of files on volumes */
	IDS_LAYERS, /* of files of layers */
	IDS_FILES,  /* of files that containers write; users of the machine are others to it */
};

/* Maps the ids of the user namespace of a child. A directory whose owner is not mapped cannot be
 * written by others either, whatever its mode, as those that all tasks of an allocation share; so
 * users of the machine have ids there that no process in a container can have. */
static int
map_ids(const struct exe *x, int pidfd, enum id_map which)
{
	static const uint32_t firsts[] = {
		[IDS_LAYERS] = CONTAINER_ID_FIRST,
		[IDS_FILES] = CONTAINER_ID_FILES,
	};
	static const char *const files[] = { "gid_map", "uid_map" };
	uint32_t pid = exe_host_pid(pidfd);
	char path[32], map[96];
	int r = pid == 0 ? -ESRCH : 0;
	int n = snprintf(
	    map, sizeof map, "%u %u %u\n", firsts[which], x->setup->user.uid, CONTAINER_IDS);

	if (which == IDS_FILES)
		(void)snprintf(map + n, sizeof map - (size_t)n, "0 %u %u\n", CONTAINER_ID_FIRST,
		    CONTAINER_IDS);
	for (size_t i = 0; i < ELEMENTSOF(files) && r == 0; i++) {
		(void)snprintf(path, sizeof path, "%u/%s", pid, files[i]);
		r = fd_write_file(EXE_FD_PROC, path, map);
	}
	return r;
}

/* Root of the machine has to do it: only a value that it sets is also the lowest that the
 * container's own processes can choose. */
static void
set_oom_score(const struct exe *x)
{
	char pid[16];

	(void)snprintf(pid, sizeof pid, "%u", exe_host_pid(x->pidfd));
	exe_oom_score_set(x, pid);
}

static void
wait_for_end(void *arg)
{
	int *go = arg;
	char byte;

	(void)close(go[1]);
	_exit(read(go[0], &byte, 1) < 0);
}

static int
open_namespace(int pidfd)
{
	char path[32];
	int fd;

	(void)snprintf(path, sizeof path, "%u/ns/user", exe_host_pid(pidfd));
	fd = openat(EXE_FD_PROC, path, O_RDONLY | O_CLOEXEC);
	return fd < 0 ? -errno : fd;
}

/* Makes a user namespace that is only used to map the ids of mounts. Returns a descriptor or
 * -errno. */
static int
make_ids(const struct exe *x, enum id_map which)
{
	cleanup_close int pidfd = -1;
	int go[2], ns, r, status;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = clone_call(CLONE_NEWUSER, -1, &pidfd, wait_for_end, go);
	CRASH_POINT(EXE_CONTAINER_AFTER_IDS);
	r = pid < 0 ? (int)pid : map_ids(x, pidfd, which);
	ns = r < 0 ? r : open_namespace(pidfd);
	(void)close(go[0]);
	(void)close(go[1]);
	if (pid > 0)
		(void)waitpid(pid, &status, 0);
	return ns;
}

/* A name from 32 bytes has 64 hexadecimal digits, whatever the bytes are. */
static int
clone_layer(const uint64_t digest[4], int ids)
{
	const uint8_t *bytes = (const uint8_t *)digest;
	char name[65];

	for (size_t i = 0; i < 32; i++)
		(void)snprintf(name + 2 * i, 3, "%02x", bytes[i]);
	return exe_tree_clone_below(EXE_FD_LAYERS, name, PLAIN | MOUNT_ATTR_RDONLY, ids);
}

static int
clone_dirs(struct exe *x)
{
	cleanup_close int ids = make_ids(x, IDS_FILES);
	char alloc[EXE_PATH_SIZE];
	int *to = exe_inside.clones;

	if (ids < 0)
		return exe_failed(x, EXE_STEP_LAYERS, -ids, EXE_ROOT_IDS);
	(void)snprintf(alloc, sizeof alloc, "%s/alloc", x->setup->alloc_name);
	to[CLONE_PRIVATE] = exe_tree_clone_below(x->task_dir, "private", PLAIN, ids);
	to[CLONE_ALLOC] = exe_tree_clone_below(EXE_FD_ALLOC, alloc, PLAIN, ids);
	to[CLONE_LOCAL] = exe_tree_clone_below(x->task_dir, "local", PLAIN, ids);
	to[CLONE_LOGS] = exe_tree_clone(EXE_FD_LOGS, PLAIN | MOUNT_ATTR_RDONLY, -1);
	to[CLONE_DEV] = x->setup->privileged ? exe_dev_clone() : -1;
	to[CLONE_CGROUP] = exe_tree_clone(EXE_FD_CGROUP, PLAIN | MOUNT_ATTR_RDONLY, -1);
	for (int i = 0; i < CLONE_CGROUP; i++)
		if (to[i] < 0 && (i != CLONE_DEV || x->setup->privileged))
			return exe_failed(x, EXE_STEP_LAYERS, -to[i], EXE_ROOT_DIRS);
	return 0;
}

/* Volumes keep their files' ids: user 999 of the container is user 999 there, without a map if the
 * container has the machine's ids. What a plugin makes in its own directories has the ids of what
 * containers write. */
static int
clone_volumes(struct exe *x)
{
	cleanup_close int ids = -1, dir_ids = -1;

	if (x->setup->n_mounts == 0 || x->setup->privileged)
		return exe_volumes_clone(x, -1, -1);
	if (!x->setup->host_ids && (ids = make_ids(x, IDS_OWN)) < 0)
		return exe_failed(x, EXE_STEP_LAYERS, -ids, EXE_ROOT_IDS);
	dir_ids = make_ids(x, IDS_FILES);
	return dir_ids < 0 ? exe_failed(x, EXE_STEP_LAYERS, -dir_ids, EXE_ROOT_IDS)
			   : exe_volumes_clone(x, ids, dir_ids);
}

int
exe_container_prepare(struct exe *x)
{
	static const char *const none[] = { NULL };
	const struct exe_setup *s = x->setup;
	cleanup_close int ids = make_ids(x, IDS_LAYERS);
	int r;

	if (ids < 0)
		return exe_failed(x, EXE_STEP_LAYERS, -ids, EXE_ROOT_IDS);
	for (uint32_t i = 0; i < s->n_layers; i++) {
		exe_inside.layers[i] = clone_layer(s->layers[i], ids);
		if (exe_inside.layers[i] < 0)
			return exe_failed(
			    x, EXE_STEP_LAYERS, -exe_inside.layers[i], EXE_ROOT_LAYER);
	}
	CRASH_POINT(EXE_CONTAINER_AFTER_LAYERS);
	if ((r = clone_dirs(x)) < 0 || (r = clone_volumes(x)) < 0)
		return r;
	r = exe_sandbox_enter(x);
	exe_inside.clones[CLONE_SYS] = -1;
	if (r == 0 && s->own_network)
		r = exe_inside.clones[CLONE_SYS] =
		    exe_fs_new("sysfs", none, PLAIN | MOUNT_ATTR_NOEXEC | MOUNT_ATTR_RDONLY);
	return r < 0 ? exe_failed(x, EXE_STEP_NAMESPACE, -r, 0) : 0;
}

/* Root of the container can stop the child of a session before that executes its program, and the
 * executor is root meanwhile. A run waits for ever: what the last container wrote may be much, and
 * nobody can stop its child. */
static int
await_child(const struct exe *x, int alive)
{
	struct pollfd p = { .fd = alive, .events = POLLIN };
	int n;

	do
		n = poll(&p, 1, x->session ? SESSION_MS : -1);
	while (n < 0 && errno == EINTR);
	return n == 0 ? -ETIMEDOUT : 0;
}

/* Not with CLONE_VFORK: the child waits for the maps of its ids, which nobody but its parent can
 * write. */
pid_t
exe_container_clone(struct exe *x, void (*fn)(void *))
{
	uint64_t flags = CLONE_INTO_CGROUP;
	struct exe_inside *in = &exe_inside;
	pid_t pid;
	int r = 0;

	if (!x->session)
		flags |= CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 (x->setup->privileged ? 0 : CLONE_NEWUSER) |
			 (x->setup->net_private ? CLONE_NEWNET : 0);
	if (pipe2(in->go, O_CLOEXEC) < 0 || pipe2(in->alive, O_CLOEXEC) < 0)
		return -errno;
	pid = clone_call(flags, EXE_FD_CGROUP, &x->pidfd, fn, x);
	CRASH_POINT(EXE_CONTAINER_AFTER_CLONE);
	(void)close(in->go[0]);
	(void)close(in->alive[1]);
	if (pid > 0 && !x->session && !x->setup->privileged)
		r = map_ids(x, x->pidfd, IDS_OWN);
	if (pid > 0)
		set_oom_score(x);
	CRASH_POINT(EXE_CONTAINER_AFTER_MAPS);
	if (pid > 0 && r == 0 && write(in->go[1], "", 1) != 1)
		r = -ECHILD; /* it was killed: only it has the other end */
	(void)close(in->go[1]);
	if (pid > 0 && r == 0)
		r = await_child(x, in->alive[0]);
	(void)close(in->alive[0]);
	return r < 0 ? r : pid;
}

void
exe_container_done(struct exe *x)
{
	for (uint32_t i = 0; i < x->setup->n_layers; i++)
		close_p(&exe_inside.layers[i]);
	for (int i = 0; i < CLONE_OWN; i++)
		close_p(&exe_inside.clones[i]);
	for (uint32_t i = 0; i < x->setup->n_mounts; i++)
		(void)close(exe_volume_tree(i));
}
