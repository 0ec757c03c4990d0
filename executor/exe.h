/* SPDX-License-Identifier: Apache-2.0 */
/* exe.h: what the executor's files share. Runs in: executor: root for the set-up, then drover-exec
 * with CAP_KILL. */
#ifndef DROVER_EXECUTOR_EXE_H
#define DROVER_EXECUTOR_EXE_H

#include <limits.h>

#include "common/exe_record.h"
#include "common/mount_proof.h"
#include "common/privs.h"
#include "proto/exe_setup.h"

#define EXE_PEERS_MAX    4
#define EXE_LOG_BUF_SIZE 8192
#define EXE_SYNC_MS      10000

struct exe_spec {
	const void *map;
	size_t size;
	const char *command, *cwd; /* cwd: NULL if not given */
	size_t n_args, n_env;
	char **argv, **envp;
};

struct exe_log {
	int pipe, file; /* -1 */
	uint32_t index, oldest;
	uint32_t n_rest; /* bytes of an unfinished line that were read and are not written */
	uint64_t size;
};

/*
 * One process has one of these. It is static and what is touched lies together, because a page that
 * is written is memory of each executor's own.
 */
struct exe {
	struct exe_record record;
	pid_t pid; /* the task as waitpid() sees it; 0: none, or gone */
	int pidfd, task_dir, listen, signals, kill_fd, events_fd, oom_fd;
	gid_t alloc_gid; /* raw_exec, not root: the group of its alloc; 0: it needs none */
	int ends[3];  /* the task's ends of its stdin, stdout, stderr, until it has them; stdin of
			 sessions only */
	int above[3]; /* session: the other ends, until its peer has them; with a terminal [0] is
			 a socket to the child until exe_terminal_take() */
	bool session, tty;
	bool in_host_ns; /* the task shares the host's pid or ipc namespace */
	struct exe_log logs[2];
	int peers[EXE_PEERS_MAX];

	int child_report; /* an eventfd, by which the task's child says how far it came */
	uint64_t
	    stop_at_ms; /* CLOCK_MONOTONIC: when cgroup.kill follows; 0: no stop is under way */
	uint64_t sent;  /* bit n - 1: signal n, by this executor */
	bool gone;      /* the task's own process has been waited for */
	bool swept;     /* … and what was left behind it has been killed */
	int lease_fd, lease_timer;
	uint64_t lease_ms, lease_ok; /* the last_ok that was read last */
	uint64_t lease_deadline_ns;
	bool lease_read;
	size_t n_syncs;
	pid_t sync_pid;
	bool record_lost;          /* it could not be written: somebody has to take EXITED */
	int syncs[EXE_MOUNTS_MAX]; /* writable volumes */
	struct exe_spec spec;
	const struct exe_setup *setup; /* mapped; NULL once the set-up is over */
	struct exe_keep keep;
};

/* Notes where the set-up failed and returns -error. */
int exe_failed(struct exe *x, enum exe_step step, int error, uint32_t detail);

/* exe_setup.c: reads the set-up. 0 or -errno (failed). */
int exe_setup_read(struct exe *x);
void exe_setup_done(struct exe *x);

/* exe_spec.c: checks all of a spec and finds what is in it once. 0 or -EBADMSG. */
int exe_spec_read(const void *map, size_t size, struct exe_spec *ret);
/* argv and environment, which stay in the spec and static memory. */
void exe_spec_words(struct exe *x);

/* exe_mounts.c: the task's mount namespace, exec driver only. */
int exe_mounts_make(struct exe *x);
/* Makes a file system of the task's own and attaches it at dir and path; with an empty path at dir
 * itself. options: name, value, … , NULL; one whose value is NULL is a flag that an older kernel
 * may not know. 0 or -errno. */
int exe_fs_attach(
    const char *type, const char *const *options, unsigned flags, int dir, const char *path);
/* Gives a plugin its socket directory: both drivers. */
int exe_plugin_dirs_give(struct exe *x);

/* exe_dirs.c: opens the task's own directory. 0 or -errno (failed). */
int exe_dirs_open(struct exe *x);
/* What of it is the task's alone becomes its user's. 0 or -errno (failed). */
int exe_dirs_give(struct exe *x);

/* exe_secrets.c: mounts the task's secrets: where exec tasks have them, in their own namespace, or
 * below a raw_exec task's directory. 0 or -errno (failed). */
int exe_secrets_mount(struct exe *x);

/* exe_files.c: in the child, as the task's user, in the directory that has `secrets` and `local`:
 * writes the spec's files, each by rename. 0 or -errno. */
int exe_files_write(struct exe *x);

/* exe_session.c: joins the task and makes what the session's child has for stdin, stdout and
 * stderr. */
int exe_session_join(struct exe *x);

/* exe_terminal.c: in the child, as the task's user: opens a terminal for it. 0 or -errno. */
int exe_terminal_open(struct exe *x);
/* In the executor, dropped: takes the terminal's other end over from the child. 0 or -errno
 * (failed). */
int exe_terminal_take(struct exe *x);

/* exe_task.c: pipes, the task's child, what is known about it. */
/* The task's end becomes x->ends[fd], what it is for; the other one does not block. 0 or -errno. */
int exe_pipe_make(struct exe *x, int fd, int *ret_above);
int exe_pipes_make(struct exe *x);
int exe_task_start(struct exe *x);
/* In the child: which step failed, and why. The values of all calls are added up, so an error of
 * EXE_STEP_COMMAND, which is reported before its execve, comes with step 0. */
void exe_child_report(struct exe *x, enum exe_step step, int error);

/* exe_command.c: the task's child, once it is the task's user: files, terminal, program. */
void exe_command_run(struct exe *x) __attribute__((noreturn));

/* exe_sandbox.c: everything that changes what a process may do. */
void exe_sandbox_prepare(struct exe *x);
int exe_sandbox_enter(struct exe *x);
/* Session: the namespaces of the task itself. -EPERM: it is not one of the exec driver. */
int exe_sandbox_join(struct exe *x);
/* In the task's child: 0, or -errno with the child to exit. */
int exe_sandbox_task(struct exe *x);
/* Prints what exe_sandbox_drop() leaves, for the table of privileges. */
void exe_sandbox_describe(void);
/* The executor's own: chroot into the log directory, user, capabilities, filter. */
int exe_sandbox_drop(struct exe *x);

/* exe_run.c: the record, and how a run ends. */
int exe_record_write(struct exe *x);
/* 1 when the run has ended and everybody knows; the process exits then. 0: not yet. */
int exe_run_end(struct exe *x);

/* exe_serve.c: the loop. Returns the exit code. */
int exe_serve(struct exe *x);
/* A failed set-up: record, a word to whoever waits, the exit code. */
int exe_serve_failure(struct exe *x);

/* exe_stop.c: signals, the stop, the lease. */
int exe_task_signal(struct exe *x, int signo);
void exe_task_stop(struct exe *x, int signo, uint64_t timeout_ms);
void exe_cgroup_kill(struct exe *x);
void exe_lease_arm(struct exe *x);
bool exe_lease_fired(struct exe *x);

/* exe_peers.c: connections of the supervisor. The two that handle an event say whether there was
 * one. */
bool exe_peer_accept(struct exe *x);
bool exe_peer_read(struct exe *x, size_t i);
void exe_peers_tell_state(struct exe *x);
/* Session: HELLO to the one peer, who gets x->above. */
void exe_peer_greet(struct exe *x);
/* EXITED to all; the number of peers that got it. */
unsigned exe_peers_tell_exited(struct exe *x);
void exe_peer_close(struct exe *x, size_t i);

/* A peer's message, checked. */
struct exe_request {
	enum exe_msg_type type;
	uint32_t signal;
	uint64_t value_ms;        /* timeout or limit */
	uint64_t kill_timeout_ms; /* LEASE with a signal */
};
/* exe_request.c: 0, or -EBADMSG. */
int exe_request_parse(const void *buf, size_t len, struct exe_request *ret);

/* exe_logs.c: pipes into rotating files. */
/* Reads what is there, once. 1 something was read, 0 nothing is there now, -EPIPE the end: the pipe
 * is closed. */
int exe_log_pump(struct exe *x, size_t i);
/* How many of the len bytes go into a file that has size of max bytes already; 0: into the next
 * one. Lines stay whole. */
size_t exe_log_take(const char *buf, size_t len, uint64_t size, uint64_t max);

#endif
