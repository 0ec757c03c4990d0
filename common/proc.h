/* SPDX-License-Identifier: Apache-2.0 */
/*
 * proc.h: how a process of drover starts: its constant, its arguments, its descriptors, its loop.
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

/*
 * The descriptors that the launcher puts there. Every process: 0 on /dev/null, 1 and 2 the log,
 * LINK. A helper's IPC end is FD_IPC; the supervisor has all of them. -1 in the launcher's table
 * means that a process has no such descriptor.
 */
enum proc_fd {
	FD_LINK = 3,   /* from the launcher, SOCK_SEQPACKET, read only: EOF means exit; struct
			  proc_link messages */
	FD_CONFIG = 4, /* sealed memfd: struct agent_config (supervisor, heartbeat, csi-helper),
			  agent_policy (others) */
	FD_LOCK = 5,   /* the flock on <data>/lock, which proc_main() keeps by a mapping in place of
			  the descriptor; csi-helper and check-helper have /dev/null */
	FD_IPC = 6,    /* helpers: to the supervisor */
	FD_SPECIAL = 7,  /* supervisor: the listening control socket; heartbeat: the lease, read and
			    write, until it has mapped it; exec-helper: the  executor's binary;
			    others: /dev/null */
	FD_SPECIAL2 = 8, /* exec-helper: its own binary, for --lookup; supervisor: NOTIFY_SOCKET's
			    fd or /dev/null */
	FD_DATA = 9,  /* exec-helper, mount-helper, file-helper: the data directory, as the launcher
			 locked it;  what has its name later is not asked */
	FD_HB_CA = 9, /* heartbeat: the files of tls {} as sealed memfds, or /dev/null */
	FD_HB_CERT = 10,
	FD_HB_KEY = 11,
	FD_SUP_EXEC = 9, /* supervisor: its ends of the six pairs */
	FD_SUP_MOUNT = 10,
	FD_SUP_CSI = 11,
	FD_SUP_HEARTBEAT = 12,
	FD_SUP_CHECK = 13,
	FD_SUP_FILE = 14,
	FD_LOG = 15,       /* every process: log_watch()'s two: where lines go to, */
	FD_LOG_LEVEL = 16, /* and the page that says which; the supervisor may write it */
	FD_SUP_LOG = 17,   /* supervisor: where they come from */
};

/*
 * How the supervisor ends, and what the launcher makes of it. EOF on FD_LINK: it finishes its turn
 * and exits 0, tasks stay. SIGTERM (blocked when it starts, so that an early one is not lost): the
 * same, but in -dev it first drains, that is stops all tasks and removes all allocs, then exits 0.
 * PROC_EXIT_GIVE_UP says that another start would end the same way (a newer state.db, say): the
 * launcher ends too, with that code. Any other end starts the set again.
 */
#define PROC_EXIT_GIVE_UP 78

/* From the launcher: helper (enum ipc_peer) was started anew as `generation`; one descriptor: the
 * supervisor's new end. */
struct proc_link {
	uint32_t helper;
	uint32_t generation;
};

/*
 * argv after --fd's: the same words for all, "--name=value"; a process ignores none it does not
 * know: that is an error. Ids are numbers because in -dev the users have no names. cgroup is the
 * parent's path below each hierarchy ("/drover-1a2b3c4d").
 */
struct proc_args {
	char instance[9]; /* 8 hex digits */
	char build[65];
	const char *data_dir;    /* absolute */
	const char *runtime_dir; /* <rt> */
	const char *cgroup;
	const char *log_level;
	uid_t uid; /* to become */
	gid_t gid;
	gid_t drover_gid; /* the supervisor's: group of what it may read */
	uid_t executor_uid;
	gid_t executor_gid;
	uid_t agent_uids[6]; /* supervisor, executor, csi, heartbeat, check, file: no task's */
	bool dev;
	uint32_t generation;
};

/* Parses argv into *ret (strings point into argv). -EINVAL with *e: names the argument. */
int proc_args_parse(int argc, char **argv, struct proc_args *ret, struct err *e);

struct proc_spec;

/*
 * Calls the handler of the request in p, which gets the request's record and the reply's, all zero
 * and at most PROC_REP_MAX bytes. *ret_fd, -1 before, is a descriptor for a reply that has one; it
 * is closed after the send. A negative return with *e is sent as IPC_ERROR_REP. PROC_LATER: nothing
 * is sent now; the process calls proc_answer() itself, once, when what it started has ended.
 */
#define PROC_LATER   INT_MAX
#define PROC_REP_MAX 1024
typedef int proc_handle_fn(
    void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e);

/* A process's children that give up more than it did, for the table of privileges. */
struct proc_child {
	const char *name, *user; /* whose uid and gid they take; 0 in privs: known then only */
	struct privs privs;      /* the filter is inherited */
};

struct proc_spec {
	const char *name;
	enum ipc_peer peer;
	bool stays_root;    /* uid 0 instead of --uid; capabilities below hold */
	uint64_t caps;      /* permitted = effective */
	bool keep_bounding; /* exec-helper: its executors need them; else emptied, since nobody else
			       calls execve */
	bool no_new_privs;
	bool lock_securebits;
	const struct sock_fprog *filter;
	const struct proc_child *child; /* NULL: it has none that drops more */
	/* NULL: all messages that it gets are records. */
	const struct ipc_codec *codec;
	/* A switch over its rows of proto/ipc_msgs.def. The process ends itself a second after a
	 * request's deadline. NULL: it has a loop of its own, `run`. */
	proc_handle_fn *handle;
	void *state;
	/* Opens what needs the privilege that is about to go. */
	int (*init)(void *state, const struct proc_args *args, struct err *e);
	/* Instead of the blocking request loop (supervisor and who asks many at once); returns the
	 * exit code. */
	int (*run)(void *state, const struct proc_args *args);
	/* After each request and at least when SIGCHLD came, in the blocking loop (exec-helper
	 * reaps). May be NULL. */
	void (*between)(void *state);
	/* How long the loop may wait before `between` is called again, -1: for ever. NULL: the
	 * same. */
	int (*timeout_ms)(void *state);
};

/*
 * Answers the request (type, serial): with rep and fd (-1: none; stays the caller's) if r is not
 * negative, else with *why. What can go wrong is the connection's, and the loop sees that too. 0 or
 * -errno.
 */
int proc_answer(const struct proc_spec *spec, unsigned type, uint32_t serial, int r,
    const void *rep, int fd, struct err *why, struct err *e);

/* Answers IPC_HELLO_REQ on FD_IPC: for a process with a loop of its own. 0, or -errno with *e:
 * exit. */
int proc_answer_hello(const struct proc_spec *spec, const struct ipc_packet *p, struct err *e);

/* Parses, checks the descriptors, inits, drops, proves, filters, runs. Returns the exit code for
 * main. */
int proc_main(const struct proc_spec *spec, int argc, char **argv);

#endif
