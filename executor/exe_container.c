// SPDX-License-Identifier: Apache-2.0
/* exe_container.c: what only root of the machine can do for a container: mounts with other ids, and
 * the maps of its user namespace. Runs in: executor, as root. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clone.h"
#include "common/fd.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"
#include "executor/exe_tree.h"
#include "proto/container_ids.h"

struct exe_inside exe_inside;

/* Maps the ids of the user namespace of a child: `inside` and those after it are the container's
 * outside. */
static int
map_ids(const struct exe *x, int pidfd, uint32_t inside)
{
	static const char *const files[] = { "gid_map", "uid_map" };
	uint32_t pid = exe_host_pid(pidfd);
	char path[32], map[48];
	int r = pid == 0 ? -ESRCH : 0;

	(void)snprintf(map, sizeof map, "%u %u %u", inside, x->setup->user.uid, CONTAINER_IDS);
	for (size_t i = 0; i < ELEMENTSOF(files) && r == 0; i++) {
		(void)snprintf(path, sizeof path, "%u/%s", pid, files[i]);
		r = fd_write_file(EXE_FD_PROC, path, map);
	}
	return r;
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

/* Makes a user namespace that is only used to map the ids of mounts: file owners from `first` on
 * become the container's. Returns a descriptor or -errno. */
static int
make_ids(const struct exe *x, uint32_t first)
{
	cleanup_close int pidfd = -1;
	int go[2], ns, r, status;
	pid_t pid;

	if (pipe2(go, O_CLOEXEC) < 0)
		return -errno;
	pid = clone_call(CLONE_NEWUSER, -1, &pidfd, wait_for_end, go);
	r = pid < 0 ? (int)pid : map_ids(x, pidfd, first);
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
	cleanup_close int fd = -1;
	char name[65];

	for (size_t i = 0; i < 32; i++)
		(void)snprintf(name + 2 * i, 3, "%02x", bytes[i]);
	fd = fd_open_beneath(EXE_FD_LAYERS, name, O_PATH | O_DIRECTORY, 0);
	return fd < 0 ? fd : exe_tree_clone(fd, PLAIN | MOUNT_ATTR_RDONLY, ids);
}

static int
clone_below(int root, const char *path, int ids)
{
	cleanup_close int fd = fd_open_beneath(root, path, O_PATH | O_DIRECTORY, 0);

	return fd < 0 ? fd : exe_tree_clone(fd, PLAIN, ids);
}

/* In a directory whose owner is not of the container's ids, nobody in it can write, whatever its
 * mode. */
static int
give_shared(const struct exe *x, const char *name)
{
	char path[EXE_PATH_SIZE];
	cleanup_close int fd = -1;

	(void)snprintf(path, sizeof path, "%s/alloc%s", x->setup->alloc_name, name);
	fd = fd_open_beneath(EXE_FD_ALLOC, path, O_PATH | O_DIRECTORY, 0);
	if (fd < 0)
		return fd == -ENOENT ? 0 : fd;
	return fchownat(fd, "", CONTAINER_ID_FIRST, CONTAINER_ID_FIRST, AT_EMPTY_PATH) < 0 ? -errno
											   : 0;
}

static int
clone_dirs(struct exe *x, int ids)
{
	char alloc[EXE_PATH_SIZE];
	int *to = exe_inside.clones, r;

	if ((r = give_shared(x, "")) < 0 || (r = give_shared(x, "/data")) < 0 ||
	    (r = give_shared(x, "/tmp")) < 0)
		return exe_failed(x, EXE_STEP_LAYERS, -r, EXE_ROOT_DIRS);
	(void)snprintf(alloc, sizeof alloc, "%s/alloc", x->setup->alloc_name);
	to[CLONE_PRIVATE] = clone_below(x->task_dir, "private", ids);
	to[CLONE_ALLOC] = clone_below(EXE_FD_ALLOC, alloc, ids);
	to[CLONE_LOCAL] = clone_below(x->task_dir, "local", ids);
	to[CLONE_LOGS] = exe_tree_clone(EXE_FD_LOGS, PLAIN | MOUNT_ATTR_RDONLY, -1);
	to[CLONE_CGROUP] = exe_tree_clone(EXE_FD_CGROUP, PLAIN | MOUNT_ATTR_RDONLY, -1);
	for (int i = 0; i < CLONE_CGROUP; i++)
		if (to[i] < 0)
			return exe_failed(x, EXE_STEP_LAYERS, -to[i], EXE_ROOT_DIRS);
	return 0;
}

/* Volumes keep their files' ids: user 999 of the container is user 999 there. */
static int
clone_volumes(struct exe *x)
{
	cleanup_close int ids = -1;

	if (x->setup->n_mounts == 0)
		return 0;
	ids = make_ids(x, 0);
	return ids < 0 ? exe_failed(x, EXE_STEP_LAYERS, -ids, EXE_ROOT_IDS)
		       : exe_volumes_clone(x, ids);
}

int
exe_container_prepare(struct exe *x)
{
	const struct exe_setup *s = x->setup;
	cleanup_close int ids = make_ids(x, CONTAINER_ID_FIRST);
	int r;

	if (ids < 0)
		return exe_failed(x, EXE_STEP_LAYERS, -ids, EXE_ROOT_IDS);
	for (uint32_t i = 0; i < s->n_layers; i++) {
		exe_inside.layers[i] = clone_layer(s->layers[i], ids);
		if (exe_inside.layers[i] < 0)
			return exe_failed(
			    x, EXE_STEP_LAYERS, -exe_inside.layers[i], EXE_ROOT_LAYER);
	}
	if ((r = clone_dirs(x, ids)) < 0 || (r = clone_volumes(x)) < 0)
		return r;
	r = exe_sandbox_enter(x);
	return r < 0 ? exe_failed(x, EXE_STEP_NAMESPACE, -r, 0) : 0;
}

/* Not with CLONE_VFORK: the child waits for the maps of its ids, which nobody but its parent can
 * write. */
pid_t
exe_container_clone(struct exe *x, void (*fn)(void *))
{
	uint64_t flags = CLONE_INTO_CGROUP;
	struct exe_inside *in = &exe_inside;
	ssize_t n;
	pid_t pid;
	char byte;
	int r = 0;

	if (!x->session)
		flags |= CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWIPC | CLONE_NEWUTS |
			 (x->setup->net_private ? CLONE_NEWNET : 0);
	if (pipe2(in->go, O_CLOEXEC) < 0 || pipe2(in->alive, O_CLOEXEC) < 0)
		return -errno;
	pid = clone_call(flags, EXE_FD_CGROUP, &x->pidfd, fn, x);
	(void)close(in->go[0]);
	(void)close(in->alive[1]);
	if (pid > 0 && !x->session)
		r = map_ids(x, x->pidfd, 0);
	if (pid > 0 && r == 0 && write(in->go[1], "", 1) != 1)
		r = -EIO;
	(void)close(in->go[1]);
	do
		n = pid < 0 ? 0 : read(in->alive[0], &byte, 1);
	while (n < 0 && errno == EINTR);
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
