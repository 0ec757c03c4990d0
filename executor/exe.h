/* SPDX-License-Identifier: Apache-2.0 */
/* exe.h: types and functions that the executor's files share. Runs in: executor: root for the
 * set-up, then user drover-exec with CAP_KILL. */
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
	const char *command, *cwd; /* cwd: NULL if none is given */
	size_t n_args, n_env;
	char **argv, **envp;
};

struct exe_log {
	int pipe, file; /* -1 */
	uint32_t index, oldest;
	uint32_t n_rest; /* bytes of an incomplete line that were read but not yet written */
	uint64_t size;
};

/* There is one per process. It is static, and members that are used together are adjacent, because
 * each written page costs private memory in every executor. */
struct exe {
	struct exe_record record;
	pid_t pid; /* the task's pid for waitpid(); 0: none, or it has ended */
	int pidfd, task_dir, listen, signals, kill_fd, events_fd, oom_fd;
	gid_t alloc_gid; /* raw_exec, not as root: the group of its alloc; 0: none needed */
	int ends[3];  /* the task's ends of stdin, stdout and stderr until the task has them; stdin
			 only for sessions */
	int above[3]; /* session: the other ends until the peer has them; with a terminal, [0] is a
			 socket to the child until exe_terminal_take() */
	bool session, tty;
	bool in_host_ns; /* the task shares the host's pid or ipc namespace */
	struct exe_log logs[2];
	int peers[EXE_PEERS_MAX];

	int child_report;    /* eventfd by which the task's child reports its progress */
	uint64_t stop_at_ms; /* CLOCK_MONOTONIC time of cgroup.kill; 0: no stop in progress */
	uint64_t sent;       /* bit n - 1: this executor sent signal n */
	bool gone;           /* the task's own process was reaped */
	bool swept;          /* … and processes that it left were killed */
	int lease_fd, lease_timer;
	uint64_t lease_ms, lease_ok; /* the last_ok of the last read */
	uint64_t lease_deadline_ns;
	bool lease_read;
	size_t n_syncs;
	pid_t sync_pid;
	bool record_lost;          /* the record could not be written: a peer must take EXITED */
	int syncs[EXE_MOUNTS_MAX]; /* writable volumes */
	struct exe_spec spec;
	const struct exe_setup *setup; /* mapped; NULL after the set-up */
	struct exe_keep keep;
};

/* Records the step at which the set-up failed and returns -error. */
int exe_failed(struct exe *x, enum exe_step step, int error, uint32_t detail);

/* exe_setup.c: reads the settings. Returns 0 or -errno (after exe_failed()). */
int exe_setup_read(struct exe *x);
void exe_setup_done(struct exe *x);

/* exe_spec.c: checks a whole spec and finds its single entries. Returns 0 or -EBADMSG. */
int exe_spec_read(const void *map, size_t size, struct exe_spec *ret);
/* Builds argv and the environment; the strings stay in the spec and in static memory. */
void exe_spec_words(struct exe *x);

/* exe_mounts.c: the task's mount namespace, exec driver only. */
int exe_mounts_make(struct exe *x);
/* Makes a file system for the task and attaches it at dir and path; with an empty path at dir
 * itself. options: name, value, …, NULL; an option with value NULL is a flag that an older kernel
 * may not know. Returns 0 or -errno. */
int exe_fs_attach(
    const char *type, const char *const *options, unsigned flags, int dir, const char *path);
/* Gives a plugin's socket directory to its user; for both drivers. */
int exe_plugin_dirs_give(struct exe *x);

/* exe_dirs.c: opens the task's directory. Returns 0 or -errno (after exe_failed()). */
int exe_dirs_open(struct exe *x);
/* Gives the task's private directories to its user. Returns 0 or -errno (after exe_failed()). */
int exe_dirs_give(struct exe *x);

/* exe_secrets.c: mounts the task's secrets: in the namespace of an exec task, or below the
 * directory of a raw_exec task. Returns 0 or -errno (after exe_failed()). */
int exe_secrets_mount(struct exe *x);

/* exe_files.c: in the child, as the task's user, in the directory with `secrets` and `local`:
 * writes the spec's files, each by rename. Returns 0 or -errno. */
int exe_files_write(struct exe *x);

/* exe_session.c: joins the task and makes stdin, stdout and stderr of the session's child. */
int exe_session_join(struct exe *x);

/* exe_terminal.c: in the child, as the task's user: opens a terminal. Returns 0 or -errno. */
int exe_terminal_open(struct exe *x);
/* In the executor, after its drop: receives the terminal's other end from the child. Returns 0 or
 * -errno (after exe_failed()). */
int exe_terminal_take(struct exe *x);

/* exe_task.c: pipes, and the task's child. */
/* Makes a pipe: the task's end becomes x->ends[fd], the other end is non-blocking. Returns 0 or
 * -errno. */
int exe_pipe_make(struct exe *x, int fd, int *ret_above);
int exe_pipes_make(struct exe *x);
int exe_task_start(struct exe *x);
/* In the child: reports the failed step and its error. The values of all calls are added up, so an
 * error of EXE_STEP_COMMAND, which was reported before the execve, has step 0. */
void exe_child_report(struct exe *x, enum exe_step step, int error);

/* exe_command.c: the task's child after its drop: files, terminal, program. */
void exe_command_run(struct exe *x) __attribute__((noreturn));

/* exe_sandbox.c: all changes of privileges. */
void exe_sandbox_prepare(struct exe *x);
int exe_sandbox_enter(struct exe *x);
/* Session: joins the task's namespaces. -EPERM: they are not those of an exec task. */
int exe_sandbox_join(struct exe *x);
/* In the task's child: returns 0, or -errno; then the child must exit. */
int exe_sandbox_task(struct exe *x);
/* Prints the privileges that remain after exe_sandbox_drop(), for the table in PRIVSEP.md. */
void exe_sandbox_describe(void);
/* The executor's own drop: chroot into the log directory, user, capabilities, filter. */
int exe_sandbox_drop(struct exe *x);

/* exe_run.c: the record and the end of a run. */
int exe_record_write(struct exe *x);
/* Returns 1 when the run has ended and this was recorded or reported, so that the process can exit;
 * 0 before. */
int exe_run_end(struct exe *x);

/* exe_serve.c: the loop. Returns the exit code. */
int exe_serve(struct exe *x);
/* Ends a failed set-up: writes the record, informs waiting peers, returns the exit code. */
int exe_serve_failure(struct exe *x);

/* exe_stop.c: signals, the stop, the lease. */
int exe_task_signal(struct exe *x, int signo);
void exe_task_stop(struct exe *x, int signo, uint64_t timeout_ms);
void exe_cgroup_kill(struct exe *x);
void exe_lease_arm(struct exe *x);
bool exe_lease_fired(struct exe *x);

/* exe_peers.c: connections of the supervisor. The two event handlers return whether there was an
 * event. */
bool exe_peer_accept(struct exe *x);
bool exe_peer_read(struct exe *x, size_t i);
void exe_peers_tell_state(struct exe *x);
/* Session: sends HELLO to the only peer, with x->above. */
void exe_peer_greet(struct exe *x);
/* Sends EXITED to all peers; returns how many got it. */
unsigned exe_peers_tell_exited(struct exe *x);
void exe_peer_close(struct exe *x, size_t i);

/* A checked message of a peer. */
struct exe_request {
	enum exe_msg_type type;
	uint32_t signal;
	uint64_t value_ms;        /* timeout or limit */
	uint64_t kill_timeout_ms; /* LEASE, with a signal */
};
/* exe_request.c: parses a message. Returns 0 or -EBADMSG. */
int exe_request_parse(const void *buf, size_t len, struct exe_request *ret);

/* exe_logs.c: copies the output pipes into rotating files. */
/* Reads once. Returns 1 if something was read, 0 if there is nothing now, -EPIPE at the end; then
 * the pipe is closed. */
int exe_log_pump(struct exe *x, size_t i);
/* Returns how many of the len bytes go into a file that already has `size` of `max` bytes; 0: all
 * go into the next file. Lines are not split. */
size_t exe_log_take(const char *buf, size_t len, uint64_t size, uint64_t max);

#endif
