/* SPDX-License-Identifier: Apache-2.0 */
/*
 * executor.h: between the supervisor and an executor, over <rt>/x/<run>.sock (SOCK_SEQPACKET), and
 * the record of a run, <data>/run/<run>.rec. Executors outlive upgrades of everything else: this
 * file is append-only. Fields are little-endian and naturally aligned, a message is at most 256
 * bytes, a receiver ignores bytes behind what it knows and refuses a message that is shorter than
 * its version 1. tests/unit/fixtures holds both as bytes of version 1.
 *
 * A session's executor has one peer, whose end of a socket pair exec-helper gave to
 * the supervisor, and no record. It says HELLO, or STATE with EXE_FAILED, and EXITED; when its peer
 * goes away it hangs up: SIGHUP, and cgroup.kill soon after.
 */
#ifndef DROVER_PROTO_EXECUTOR_H
#define DROVER_PROTO_EXECUTOR_H

#include <stddef.h>
#include <stdint.h>

#define EXE_PROTO_VERSION 2 /* of version 2: what stands behind a …_V1_SIZE */
#define EXE_MSG_MAX       256

enum exe_msg_type {
	EXE_HELLO = 1, /* executor, first on every connection; SCM_RIGHTS: a pidfd of the task (none
			  if it is not running); of a session with a command instead: the pty, or
			  stdin, stdout and stderr */
	EXE_STATE = 2, /* executor: body as HELLO, when it changed */
	EXE_EXITED = 3, /* executor: struct exe_exited, then it closes and exits */
	EXE_SIGNAL = 4, /* supervisor */
	EXE_STOP = 5,   /* supervisor */
	EXE_LEASE = 6,  /* supervisor; SCM_RIGHTS: the lease page, read only, optional */
};

enum exe_state {
	EXE_SETTING_UP = 1, /* no process of the task has run yet */
	EXE_RUNNING = 2,
	EXE_STOPPING = 3, /* a kill signal has been sent */
	EXE_ENDED = 4,    /* the task is gone and its cgroup is empty */
	EXE_FAILED = 5,   /* the set-up failed: step and error say where */
};

/* Where a set-up failed. Order is the order of the steps. */
enum exe_step {
	EXE_STEP_NONE = 0,
	EXE_STEP_SPEC = 1,      /* the task spec is not one */
	EXE_STEP_PIPES = 2,     /* pipes: of the logs, or of a session */
	EXE_STEP_MOUNT = 3,     /* detail: number of the mount */
	EXE_STEP_PROOF = 4,     /* detail: enum exe_proof << 16 | number of the mount */
	EXE_STEP_NAMESPACE = 5, /* template, proc, dev */
	EXE_STEP_CGROUP = 6,
	EXE_STEP_CLONE = 7,
	EXE_STEP_USER = 8, /* the task's drop */
	EXE_STEP_SECRETS = 9,
	EXE_STEP_COMMAND = 10, /* execve, or its look-up */
	EXE_STEP_DROP = 11,    /* the executor's own */
	EXE_STEP_CWD = 12,
	EXE_STEP_DIRS = 13,     /* the task's own directories; detail: enum exe_dirs */
	EXE_STEP_TERMINAL = 14, /* a session's */
};

/* What is wrong with the task's directories. */
enum exe_dirs {
	EXE_DIRS_NONE = 0,
	EXE_DIRS_CLOSED = 1, /* the alloc's has no group by which the user could get in */
};

/* Which proof of a promised mount failed. */
enum exe_proof {
	EXE_PROOF_NONE = 0,
	EXE_PROOF_OPEN = 1,       /* the path does not open */
	EXE_PROOF_MOUNT_ROOT = 2, /* it is no mount point */
	EXE_PROOF_MOUNT_ID = 3,
	EXE_PROOF_DEVICE = 4,
	EXE_PROOF_INODE = 5,
	EXE_PROOF_BIRTH = 6,
	EXE_PROOF_FS = 7, /* type, id or flags of the file system */
};

struct exe_head {
	uint16_t version; /* of the sender */
	uint16_t type;
	uint32_t size; /* of the whole message */
};

struct exe_hello {
	struct exe_head head;
	uint8_t run[16];
	uint32_t state; /* enum exe_state */
	uint32_t step;  /* EXE_FAILED: enum exe_step */
	int32_t error;  /* EXE_FAILED: errno, positive */
	uint32_t detail;
	uint32_t executor_pid; /* in the host's pid namespace */
	uint32_t task_pid;
	uint64_t task_start_ticks; /* field 22 of /proc/PID/stat: with boot id and pid it names a
				      process for ever */
	uint64_t started_boot_ns;  /* CLOCK_BOOTTIME when the task was let go */
	uint64_t started_real_ns;  /* CLOCK_REALTIME */
	uint64_t lease_dev, lease_ino; /* of the lease page it reads; 0: none */
	uint64_t lease_ms;
	uint32_t kill_signal; /* how it would stop its task by itself; 0: version 1 does not say */
	uint32_t zero;
	uint64_t kill_timeout_ms;
};
#define EXE_HELLO_V1_SIZE 96

enum exe_end_flag {
	EXE_END_OOM = 1,        /* the kernel counted an OOM kill in the task's cgroup */
	EXE_END_LEASE = 2,      /* the executor stopped it: the lease had ended */
	EXE_END_STOP = 4,       /* the supervisor asked for it */
	EXE_END_KILLED = 8,     /* the kill timeout passed, cgroup.kill was used */
	EXE_END_SYNCED = 16,    /* syncfs of every writable volume returned */
	EXE_END_SYNC_LATE = 32, /* one did not within 10 s */
	EXE_END_UNKNOWN = 64,   /* nobody waited for it: no exit status */
	/* Of a signal that ended it, if the executor says either: whether it had sent that one, on
	 * request or to stop it. Nobody else's name is with a dead child's status. */
	EXE_END_SENT = 128,
	EXE_END_FOREIGN = 256,
};

struct exe_exited {
	struct exe_head head;
	uint8_t run[16];
	uint32_t flags;    /* enum exe_end_flag */
	int32_t exit_code; /* of exit(3); 0 if it was a signal */
	int32_t exit_signal;
	uint32_t zero;
	uint64_t ended_boot_ns, ended_real_ns;
	uint64_t lease_limit_ms, lease_last_ok_ns,
	    lease_late_ns; /* with EXE_END_LEASE: how long after the deadline it began */
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
	uint64_t timeout_ms; /* then cgroup.kill; 0: at once */
};

struct exe_lease {
	struct exe_head head;
	uint64_t limit_ms;    /* 0: no lease any more */
	uint32_t kill_signal; /* its own from now on; 0: both stay as they are */
	uint32_t zero;
	uint64_t kill_timeout_ms;
};
#define EXE_LEASE_V1_SIZE 16

#define EXE_RECORD_MAGIC   0x6365722d72657672ull
#define EXE_RECORD_SIZE    256
#define EXE_RECORD_VERSION 1

/*
 * Written whole (one pwrite) by exec-helper when the run is made (state EXE_SETTING_UP, no pids),
 * by the executor when the task starts and when it has ended. sum is FNV-1a 64 over all bytes
 * before it.
 */
struct exe_record {
	uint64_t magic;
	uint32_t version, size;
	uint8_t run[16], alloc[16];
	char boot_id[40];
	uint32_t state, step;
	int32_t error;
	uint32_t detail;
	uint32_t executor_pid, task_pid;
	uint64_t task_start_ticks;
	uint64_t started_boot_ns, started_real_ns;
	uint32_t flags;
	int32_t exit_code, exit_signal;
	uint32_t zero;
	uint64_t ended_boot_ns, ended_real_ns;
	uint64_t lease_limit_ms, lease_last_ok_ns, lease_late_ns;
	uint8_t pad[56];
	uint64_t sum;
};

_Static_assert(sizeof(struct exe_record) == EXE_RECORD_SIZE, "the record is 256 bytes");
_Static_assert(offsetof(struct exe_hello, kill_signal) == EXE_HELLO_V1_SIZE, "version 1 of HELLO");
_Static_assert(sizeof(struct exe_hello) == 112, "version 2 of HELLO");
_Static_assert(offsetof(struct exe_lease, kill_signal) == EXE_LEASE_V1_SIZE, "version 1 of LEASE");
_Static_assert(sizeof(struct exe_lease) == 32, "version 2 of LEASE");
_Static_assert(sizeof(struct exe_exited) == 80, "version 1 of EXITED");

#endif
