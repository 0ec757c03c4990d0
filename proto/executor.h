/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor.h: the protocol between the supervisor and an executor, over <rt>/x/<run>.sock
 * (SOCK_SEQPACKET). Executors outlive upgrades of everything else, so this file is append-only.
 * Fields are little-endian and naturally aligned; a message has at most 256 bytes. A receiver
 * ignores bytes after those that it knows and rejects a message shorter than its version 1.
 * tests/unit/fixtures has the bytes of version 1 of both.
 *
 * A session's executor has no record and one peer: the supervisor, which got its end of a socket
 * pair from exec-helper. It sends HELLO, or STATE with EXE_FAILED, and EXITED. When its peer closes
 * the socket, it sends SIGHUP to the session's processes, and kills its cgroup soon after.
 *
 * Runs in: supervisor, executor, holder.
 */
#ifndef DROVER_PROTO_EXECUTOR_H
#define DROVER_PROTO_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#include "proto/exe_step.h"
#include "proto/run_record.h"

#define EXE_PROTO_VERSION 2 /* version 2 added the fields after each …_V1_SIZE */
#define EXE_MSG_MAX       256

enum exe_msg_type {
	EXE_HELLO = 1, /* executor, first on every connection; SCM_RIGHTS: a pidfd of the task (none
			  if it is not running); in a session with a command instead the pty, or
			  stdin, stdout and stderr */
	EXE_STATE = 2, /* executor: body of HELLO, after each change */
	EXE_EXITED = 3, /* executor: struct exe_exited, then it closes and exits */
	EXE_SIGNAL = 4, /* supervisor */
	EXE_STOP = 5,   /* supervisor */
	EXE_LEASE = 6,  /* supervisor; SCM_RIGHTS: the lease page, read only, optional */
	EXE_API = 7,    /* executor, after HELLO, of a task that has a socket `api.sock`: only the
			   head;    SCM_RIGHTS: that socket, listening and non-blocking */
};

enum exe_state {
	EXE_SETTING_UP = 1, /* no process of the task has run yet */
	EXE_RUNNING = 2,
	EXE_STOPPING = 3, /* a kill signal has been sent */
	EXE_ENDED = 4,    /* the task has ended and its cgroup is empty */
	EXE_FAILED = 5,   /* the set-up failed; step and error say where and why */
};

struct exe_head {
	uint16_t version; /* of the sender */
	uint16_t type;
	uint32_t size; /* of the whole message */
};

struct exe_hello {
	struct exe_head head;
	uint8_t run[16];
	uint32_t state;        /* enum exe_state */
	uint32_t step;         /* EXE_FAILED: enum exe_step */
	int32_t error;         /* EXE_FAILED: errno, positive */
	uint32_t detail;       /* EXE_FAILED: of the step; EXE_RUNNING: bits of the volumes of a
				  container whose file systems cannot map ids */
	uint32_t executor_pid; /* in the host's pid namespace */
	uint32_t task_pid;
	uint64_t task_start_ticks; /* field 22 of /proc/PID/stat: with boot id and pid it identifies
				      a process forever */
	uint64_t started_boot_ns;  /* CLOCK_BOOTTIME when the task was allowed to run */
	uint64_t started_real_ns;  /* CLOCK_REALTIME */
	uint64_t lease_dev, lease_ino; /* of the lease page that it reads; 0 if there is none */
	uint64_t lease_ms;
	uint32_t kill_signal; /* the executor's own; 0 in version 1, which does not report it */
	uint32_t zero;
	uint64_t kill_timeout_ms;
};
#define EXE_HELLO_V1_SIZE 96

enum exe_end_flag {
	EXE_END_OOM = 1,        /* the kernel counted an OOM kill in the task's cgroup */
	EXE_END_LEASE = 2,      /* the executor stopped the task because its lease ended */
	EXE_END_STOP = 4,       /* the supervisor requested the stop */
	EXE_END_KILLED = 8,     /* the kill timeout passed, and cgroup.kill was used */
	EXE_END_SYNCED = 16,    /* syncfs of every writable volume returned */
	EXE_END_SYNC_LATE = 32, /* a syncfs did not return within 10 s */
	EXE_END_UNKNOWN = 64,   /* the exit status could not be read */
	/* If a signal ended the task and the executor knows more about it: SENT if it had sent that
	 * signal itself, on request or to stop the task, else FOREIGN. The exit status does not
	 * tell the sender. */
	EXE_END_SENT = 128,
	EXE_END_FOREIGN = 256,
};

struct exe_exited {
	struct exe_head head;
	uint8_t run[16];
	uint32_t flags;    /* enum exe_end_flag */
	int32_t exit_code; /* of exit(3); 0 if a signal ended it */
	int32_t exit_signal;
	uint32_t zero;
	uint64_t ended_boot_ns, ended_real_ns;
	uint64_t lease_limit_ms, lease_last_ok_ns,
	    lease_late_ns; /* with EXE_END_LEASE: how long after the deadline the stop began */
};

struct exe_signal {
	struct exe_head head;
	uint32_t signal;
	uint32_t zero;
};

struct exe_stop {
	struct exe_head head;
	uint32_t signal; /* 0: the executor's own kill signal and timeout */
	uint32_t zero;
	uint64_t timeout_ms; /* after that cgroup.kill; 0: immediately */
};

struct exe_lease {
	struct exe_head head;
	uint64_t limit_ms;    /* 0: the lease is removed */
	uint32_t kill_signal; /* the executor's own from now on; 0: signal and timeout stay */
	uint32_t zero;
	uint64_t kill_timeout_ms;
};
#define EXE_LEASE_V1_SIZE 16

/* A message of an executor. head.type says which member is meant; it may be longer than this
 * version knows. */
union exe_from {
	struct exe_head head;
	struct exe_hello hello; /* also EXE_STATE */
	struct exe_exited exited;
	uint8_t bytes[EXE_MSG_MAX];
};

_Static_assert(offsetof(struct exe_hello, kill_signal) == EXE_HELLO_V1_SIZE, "version 1 of HELLO");
_Static_assert(sizeof(struct exe_hello) == 112, "version 2 of HELLO");
_Static_assert(offsetof(struct exe_lease, kill_signal) == EXE_LEASE_V1_SIZE, "version 1 of LEASE");
_Static_assert(sizeof(struct exe_lease) == 32, "version 2 of LEASE");
_Static_assert(sizeof(struct exe_exited) == 80, "version 1 of EXITED");

#endif
