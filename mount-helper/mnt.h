/* SPDX-License-Identifier: Apache-2.0 */
/* mnt.h: what the files of the mount-helper share. Runs in: mount-helper, as root. */
#ifndef DROVER_MOUNT_HELPER_MNT_H
#define DROVER_MOUNT_HELPER_MNT_H

#include <protobuf-c/protobuf-c.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/config.h"
#include "common/err.h"
#include "common/id.h"
#include "common/mount_proof.h"
#include "common/proc.h"
#include "proto/mount.pb-c.h"

#define MNT_JOBS_MAX     32 /* children at work at one time */
#define MNT_STUCK_MAX    16 /* children that outlived SIGKILL: beyond that nothing more is started */
#define MNT_KINDS        4  /* of plugin: PluginKind, NONE unused */
#define MNT_ROOTS        (MNT_ROOT__MNT_ROOT_CSI + 1) /* that are directories */
#define MNT_NOBODY       65534
#define PLUGIN_PATH_SIZE (sizeof "controller/" + NAME_BYTES_MAX)

struct mnt;
struct mnt_job;

/* What a child sends back before it exits. */
struct mnt_result {
	int r; /* negative: e says why */
	struct err e;
	int fd; /* -1: none; sent along */
	bool flag;
	struct mount_proof proof;
};

/* Runs in the child. fd is the one descriptor that it has. Sets what it has to say in ret. */
typedef int mnt_work(int fd, const void *arg, struct mnt_result *ret, struct err *e);
/* Runs in the helper when the work has succeeded: answers. res->fd is closed after it. */
typedef void mnt_done(struct mnt *m, const struct mnt_job *j, struct mnt_result *res);

struct mnt_job {
	pid_t pid; /* 0: a free slot */
	int sock;
	unsigned type; /* of the request that waits for it; 0: none does */
	uint32_t serial;
	uint64_t deadline_ms;
	mnt_work *work;
	mnt_done *done;
	char what[160]; /* "prove volume x": stands in the error when nothing comes back */
};

struct mnt {
	const struct proc_args *args;
	char data_dir[CONFIG_PATH_SIZE]; /* without links, as mountinfo has it */
	int root_fds[MNT_ROOTS];         /* by MntRoot; directories that only root can change */
	int trash_fds[MNT_ROOTS];
	struct mnt_job jobs[MNT_JOBS_MAX];
	pid_t stuck[MNT_STUCK_MAX + MNT_JOBS_MAX];
	unsigned n_stuck;
	bool has_quota;  /* of projects, for what is below alloc/: mnt_quota.c */
	bool trash_full; /* something was put there since the last emptying began */
	int mounts_fd;   /* of mountinfo, -1 until it is needed */
	char *mounts;    /* what it said last, mnt_mounts.c */
};

extern const struct proc_spec mnt_spec;

/* mnt_roots.c: opens the roots, before the drop. */
int mnt_roots_open(void *state, const struct proc_args *args, struct err *e);
extern const char *const mnt_kind_names[MNT_KINDS];

/* One handler per message of proto/mount.proto; see proc_handler in common/proc.h. */
proc_handler mnt_on_alloc_dir_make, mnt_on_alloc_dir_remove, mnt_on_plugin_dir_make,
    mnt_on_plugin_dir_remove, mnt_on_plugin_connect, mnt_on_volume_dir_make, mnt_on_volume_prove,
    mnt_on_volume_dir_remove, mnt_on_root_list, mnt_on_disk_stat, mnt_on_alloc_fs,
    mnt_on_disk_usage;

/* The 16 bytes of a field as an alloc's id in its text form; -EINVAL with *e for anything else. */
int mnt_alloc_read(const ProtobufCBinaryData *field, char ret[ID_UUID_SIZE], struct err *e);
/* "node/name", below csi/; -EINVAL unless the kind has a directory and the name may be a component.
 */
int mnt_plugin_path(PluginKind kind, const char *plugin, char ret[PLUGIN_PATH_SIZE], struct err *e);

/*
 * mnt_trash.c: moves dir_fd's name, a path perhaps, out of the way at once; its contents go later,
 * in a child. 0, also if it was not there.
 */
int mnt_trash_put(struct mnt *m, MntRoot root, int dir_fd, const char *name, struct err *e);
/* Starts that child if there is something to do and none is at work. */
void mnt_trash_empty(struct mnt *m);
/* Is such a child at work, or about to be? What is in the trash then is no leak. */
bool mnt_trash_is_busy(const struct mnt *m);

/*
 * mnt_child.c: forks a child that runs work(fd, arg) and is gone after timeout_ms. Returns
 * PROC_LATER: done() or an error answers req (NULL: nobody waits). -EBUSY with MNT_STUCK_MAX
 * children that do not die. fd stays the caller's.
 */
int mnt_child_start(struct mnt *m, const struct ipc_packet *req, unsigned timeout_ms, int fd,
    mnt_work *work, const void *arg, mnt_done *done, const char *what, struct err *e);
/* Takes results, ends the overdue, reaps. Between requests. */
void mnt_child_collect(void *state);
/* How long until the next deadline; -1: no child is at work. */
int mnt_child_timeout(void *state);

/* mnt_quota.c: does the file system of fd hold projects to their limits? */
bool mnt_quota_is_on(int fd);
/*
 * Makes a new alloc's directory a project, or one of from_fd's (if that is one), without a limit:
 * in one that is full nothing could be made. 0, also if it is none now; -errno.
 */
int mnt_quota_join(int dir_fd, int from_fd);
/* Sets the limit of the project that a directory is, if it is one of ours. 0 or -errno. */
int mnt_quota_limit(int dir_fd, uint32_t mib);
/* Are two directories of one project of ours? */
bool mnt_quota_is_shared(int dir_fd, int other_fd);
/* What an alloc takes of its limit, and that; false if it has none. */
bool mnt_quota_read(int root_fd, const char *alloc, uint64_t *ret_bytes, uint64_t *ret_limit);
/* An alloc that is to be removed has no limit any more; its project is free when it is gone. */
void mnt_quota_drop(int root_fd, const char *alloc);

/*
 * mnt_plugin.c: the root of a plugin by its path below csi/, O_PATH. -ENOENT; -EBUSY when something
 * else is mounted on it; with need_mount -ENOTCONN when it is no mount point of its own (after a
 * reboot, until the plugin is started again).
 */
int mnt_plugin_root_open(
    const struct mnt *m, const char *path, bool need_mount, int *ret_fd, struct err *e);

/*
 * mnt_mounts.c: *ret: the paths of all mounts below the data directory, relative to it, one behind
 * the other, with an empty one at the end. Until the next call. 0 or -errno.
 */
int mnt_mounts_look(struct mnt *m, const char **ret, struct err *e);

/* mnt_volume.c: removes per-alloc/<alloc> of all plugins, which must be empty. 0 or -errno. */
int mnt_volume_alloc_remove(const struct mnt *m, const char *alloc, struct err *e);

#endif
