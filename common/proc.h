/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h: how a process of drover starts (constant, arguments, descriptors) and its request loop.
 * Runs in: every process but launcher, executor and cli.
 */
#ifndef DROVER_COMMON_PROC_H
#define DROVER_COMMON_PROC_H

#include <limits.h>
#include <linux/filter.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "common/err.h"
#include "common/ipc.h"
#include "common/log.h"
#include "common/privs.h"
#include "common/proc_fd.h"

/*
 * How the supervisor ends, and how the launcher reacts. At EOF on FD_LINK it finishes its turn and
 * exits 0; tasks keep running. SIGTERM and SIGINT (blocked at its start, so that an early one is
 * not lost) do the same, but in -dev, or as drain_on_shutdown says (leave.h), it first drains the
 * node: it stops all tasks, with -dev removes all allocs, then exits 0. PROC_EXIT_GIVE_UP means
 * that a restart would end in the same way (for example with a newer state.db): the launcher exits
 * too, with that code. SIGUSR1 and SIGUSR2 (blocked too) have the node land and retire
 * (departure.h); PROC_EXIT_LEFT means that it has, and the launcher exits 0. After any other end
 * the launcher restarts all processes.
 */
#define PROC_EXIT_GIVE_UP 78
#define PROC_EXIT_LEFT    79

/* Sent by the launcher after it restarted helper (enum ipc_peer) as `generation`, with one
 * descriptor: the supervisor's new socket. */
struct proc_link {
	uint32_t helper;
	uint32_t generation;
};

/*
 * The arguments of a process, the same for all: "--name=value". An unknown argument is an error.
 * Users are passed as numbers because in -dev they have no names. cgroup is the parent's path below
 * each hierarchy ("/drover-1a2b3c4d").
 */
struct proc_args {
	char instance[9]; /* 8 hex digits */
	char build[65];
	const char *data_dir;    /* absolute path */
	const char *runtime_dir; /* <rt> */
	const char *cgroup;
	const char *log_level;
	uid_t uid; /* the uid that the process takes */
	gid_t gid;
	gid_t drover_gid; /* supervisor's, which may read what helpers make for it */
	uid_t executor_uid;
	gid_t executor_gid;
	uid_t agent_uids[11]; /* uids of supervisor, executor, csi, heartbeat, check, file, parser,
				fetcher, renderer, listener, image-fetcher; no task may have
				them */
	bool dev;
	uint32_t generation;
};

/* Parses argv into *ret (strings point into argv). Returns 0, or -EINVAL with *e naming the
 * argument. */
int proc_args_parse(int argc, char **argv, struct proc_args *ret, struct err *e);

struct proc_spec;

/*
 * Handles the request in p. rep, at most PROC_REP_MAX bytes, is the reply's record, all zero at
 * first. *ret_fd, -1 at first, is the descriptor for a reply that has one; it is closed after it
 * was sent. Returns 0; a negative return value and *e are sent as IPC_ERROR_REP. With PROC_LATER
 * nothing is sent: the process calls proc_answer() once when the work is done.
 */
#define PROC_LATER   INT_MAX
#define PROC_REP_MAX 1024
typedef int proc_handle_fn(
    void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e);

/* For the table of privileges: children that drop more privileges than the process. */
struct proc_child {
	const char *name, *user; /* user: whose uid they take; privs has 0 */
	struct privs privs;      /* the filter is inherited from the process */
};

struct proc_spec {
	const char *name;
	enum ipc_peer peer;
	bool stays_root;       /* uid 0 instead of --uid, with only the capabilities below */
	uint64_t caps;         /* permitted and effective set */
	bool keep_bounding;    /* for exec-helper: its executors need the set */
	bool caps_of_children; /* the programs that it runs have the same capabilities */
	bool
	    own_namespace; /* with stays_root: uid 0 of a user namespace, which the launcher made */
	bool no_new_privs;
	bool lock_securebits;
	const struct sock_fprog *filter;
	const struct proc_child *child; /* NULL if no child drops more */
	/* NULL if the process receives only records. */
	const struct ipc_codec *codec;
	/* A switch over the process's messages in proto/ipc_msgs.def. The process kills itself one
	 * second after a request's deadline. NULL if it has a loop of its own, `run`. */
	proc_handle_fn *handle;
	void *state;
	/* Opens what needs the privileges that are dropped next. Returns 0, or -errno with *e. */
	int (*init)(void *state, const struct proc_args *args, struct err *e);
	/* Replaces the blocking loop, for example by proc_serve_many(); returns exit code. */
	int (*run)(void *state, const struct proc_args *args);
	/* Called by the blocking loop after each request and each SIGCHLD. May be NULL. */
	void (*between)(void *state);
	/* Returns how many ms the loop may wait before the next `between`; -1, or NULL: no limit */
	int (*timeout_ms)(void *state);
};

/*
 * Answers the request (type, serial): with rep and fd (-1 if none; stays the caller's) if r is not
 * negative, else with *why. Returns 0, or -errno with *e for an error of the connection, which the
 * loop then sees too.
 */
int proc_answer(const struct proc_spec *spec, unsigned type, uint32_t serial, int r,
    const void *rep, int fd, struct err *why, struct err *e);

/* Answers IPC_HELLO_REQ on FD_IPC, for a process with a loop of its own. Returns 0, or -errno with
 * *e: the process must exit. */
int proc_answer_hello(const struct proc_spec *spec, const struct ipc_packet *p, struct err *e);

/* Runs a process: parses arguments, calls init, drops privileges, proves the drop, installs the
 * filter, and runs the loop. Returns the exit code for main. */
int proc_main(const struct proc_spec *spec, int argc, char **argv);

#endif
