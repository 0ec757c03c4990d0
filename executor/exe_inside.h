/* SPDX-License-Identifier: Apache-2.0 */
/*
 * exe_inside.h: the set-up of a container. exe_container.c prepares it as root of the machine:
 * clones of the layers and of the task's directories, with the ids of the container, and a child in
 * a user namespace of its own. The child does all the rest, as root of that namespace, who is
 * nobody outside, or with host_ids uid 0 without a capability: exe_root.c, exe_inside.c,
 * exe_kernel.c, exe_option.c, exe_user.c. Runs in: executor, and the container's child.
 */
#ifndef DROVER_EXECUTOR_EXE_INSIDE_H
#define DROVER_EXECUTOR_EXE_INSIDE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "proto/exe_setup.h"

#define ETC_PLACE "/dev/shm"

struct exe;

/* Clones that root of the machine makes, and detached mounts of the child. */
enum exe_clone {
	CLONE_PRIVATE, /* <task>/private: has the upper directory of the overlay, and the files of
			  /etc */
	CLONE_ALLOC,
	CLONE_LOCAL,
	CLONE_LOGS,
	CLONE_DEV,    /* the machine's, of a privileged container; else -1 */
	CLONE_CGROUP, /* -1: there is none */
	CLONE_SYS,    /* of the allocation's network; else the child makes it */
	CLONE_OWN,    /* number of clones of the executor's root */
	CLONE_PROC = CLONE_OWN,
	CLONE_ETC,  /* the directory in CLONE_PRIVATE that has files of /etc */
	CLONE_NULL, /* the first of the device nodes */
	CLONES = CLONE_NULL + 6,
};

struct exe_inside {
	int go[2], alive[2]; /* pipes of executor and child: the ids are mapped; the child has
				executed or ended */
	int clones[CLONES];
	int layers[EXEC_LAYERS_MAX]; /* from the highest */
	/* The child's: */
	int root; /* "/" of the container, without rights to read; closed before it executes */
	uid_t uid;
	gid_t gid;
	uint32_t n_groups;
	gid_t groups[EXE_GROUPS_MAX];
	char home[CONFIG_PATH_SIZE], hostname[72];
	uint64_t caps;
	uint64_t shm_bytes;
	bool no_new_privs, read_only, init, own_nofile, files_written;
	bool host_ids; /* uid 0 is also uid 0 of the machine, without its capabilities */
};
extern struct exe_inside exe_inside;

/* exe_container.c, as root: makes the clones. Returns 0 or -errno (after exe_failed()). */
int exe_container_prepare(struct exe *x);
/* Runs fn(x) in a child in namespaces of its own, and waits until the child has executed or ended.
 * Returns its pid, or -errno. */
pid_t exe_container_clone(struct exe *x, void (*fn)(void *));
/* Closes what only the child needed. */
void exe_container_done(struct exe *x);

/* In the child; each returns 0, or -errno with the step and its detail in x->record. */
/* exe_inside.c: becomes root of the container and makes everything in it. */
int exe_inside_make(struct exe *x);
/* Session: finds the user in the container, whose namespaces the child has joined. */
int exe_inside_join(struct exe *x);
int exe_inside_failed(struct exe *x, uint32_t step, uint32_t detail, int r);
/* exe_root.c: mounts the overlay, and makes it the root. */
int exe_root_enter(struct exe *x);
/* Opens exe_inside.root, which what follows needs. Returns 0 or -errno. */
int exe_root_open(void);
/* Makes directories down to path, which may have links, or an empty file there, and opens it.
 * Returns a descriptor, or -errno. */
int exe_root_place(const char *path, bool is_dir);
/* Attaches a detached mount there. Returns 0, or -errno, which is -ENOTUNIQ if the path leads to
 * the root. */
int exe_root_attach(int tree, const char *path, bool is_dir);
/* exe_user.c: finds the user, as an image names it, in /etc/passwd and /etc/group of the container.
 * text: NULL: root. */
int exe_user_find(const char *text);
/* Adds a group by name or number. Returns 0 or -errno. */
int exe_user_add_group(const char *text);
/* exe_option.c: applies the options of the spec that belong to this phase. Returns 0 or -errno,
 * with the number of the option. */
enum options_phase {
	OPTIONS_FIRST,  /* before anything is made; a session has these and the last */
	OPTIONS_KERNEL, /* before /proc/sys is protected */
	OPTIONS_FILES,  /* those of CLONE_ETC are below ETC_PLACE */
	OPTIONS_MOUNTS,
	OPTIONS_LAST, /* the user is known */
};
int exe_options_apply(struct exe *x, enum options_phase phase);
/* exe_kernel.c: protects and masks parts of /proc and /sys. Returns 0 or -errno. */
int exe_kernel_mask(void);
/* exe_init.c: continues in a child, and is its init here: reaps orphans, passes signals on, and
 * ends as the child does. */
int exe_init_fork(void);

#endif
