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
#define EXE_DRAIN_READS  1024 /* of a pipe after the task's end */

struct exe_spec {
	const void *map;
	size_t size;
	const char *command, *cwd, *user; /* cwd, user: NULL if none is given */
	size_t n_args, n_env;
	char **argv, **envp;
};

struct exe_log {
	int pipe, file, times; /* -1; pipe: of stdout, it may be the master end of a terminal */
	uint32_t index, oldest;
	uint64_t size, line; /* bytes of the file; those of an incomplete line at its end */
	uint64_t stamped_us, n_times; /* of the last record in times; records there */
};

struct exe_journal {            /* exe_journal.h */
	int fd;                 /* connected to the journal; -1 */
	bool given_up;          /* it did not accept entries in time: do not wait for it */
	bool ending;            /* the task has ended: incomplete lines are sent too */
	uint64_t wait_until_ms; /* CLOCK_MONOTONIC; 0: nothing waits for the journal */
};

/* There is one per process. It is static, and members that are used together are adjacent, because
 * each written page costs private memory in every executor. */
struct exe {
	struct exe_record record;
	pid_t pid; /* the task's pid for waitpid(); 0: none, or it has ended */
	/* api: the socket in the task's secrets; resolv_conf: open for the task's child, which
	 * writes it; a session has neither */
	int pidfd, task_dir, listen, signals, kill_fd, events_fd, oom_fd, api, resolv_conf;
	gid_t alloc_gid; /* raw_exec, not as root: the group of its alloc; 0: none needed */
	int ends[3];  /* the task's ends of stdin, stdout and stderr until the task has them; stdin
			 only for sessions */
	int above[3]; /* session: the other ends until the peer has them; with a terminal, [0] is a
			 socket to the child until exe_terminal_take(), and [1] of a run is the
			 slave end, which keeps the terminal open */
	bool session, tty;
	bool container;
	int alive;       /* container: the child's end of a pipe that its execve closes; -1 */
	bool in_host_ns; /* the task shares the host's pid or ipc namespace */
	struct exe_log logs[2];
	struct exe_journal journal;
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
	uint32_t unmapped; /* bits of mounts whose file systems cannot map the ids of a container */
	size_t n_syncs;
	pid_t sync_pid;
	bool record_lost;          /* the record could not be written: a peer must take EXITED */
	int syncs[EXE_MOUNTS_MAX]; /* writable volumes */
	struct exe_spec spec;
	const struct exe_setup
	    *setup; /* mapped; after the set-up NULL, or for exe_journal_begin() */
	struct exe_keep keep;
};

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

/* exe_logs.c: copies the output pipes into rotating files, the journal, or both. */
/* Reads once. Returns 1 if something was read, 0 if there is nothing now or the
 * journal must take more first, -EPIPE at the end; then
 * the pipe is closed. */
int exe_log_pump(struct exe *x, size_t i);
/* Appends to the stream's files. On a full disk, output is dropped and the task continues. */
void exe_log_write(struct exe *x, size_t i, const char *buf, size_t len);
/* Returns how many of the len bytes go into a file that already has `size` of `max` bytes, the last
 * `line` of which are an incomplete line; 0: all go into the next file. A line of at most max bytes
 * is not split: the file that has its beginning gets its end too, beyond max. */
size_t exe_log_take(const char *buf, size_t len, uint64_t size, uint64_t line, uint64_t max);

#endif
