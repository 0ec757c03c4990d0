/* SPDX-License-Identifier: Apache-2.0 */
/*
 * run.h: one start of one task, from the row in state.db over the start request and the executor's
 * socket to the reap. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_DRIVER_RUN_H
#define DROVER_SUPERVISOR_DRIVER_RUN_H

#include "common/id.h"
#include "proto/ipc_records.h"
#include "proto/executor.h"
#include "supervisor/core/sup.h"

struct run;

/* How a run ended. */
struct run_end {
	bool known;     /* false: nobody saw its exit status; reason says why */
	bool rebooted;  /* it was of another boot: no end of its own */
	uint32_t flags; /* enum exe_end_flag */
	int exit_code, exit_signal;
	uint64_t ended_real_ns; /* 0: unknown */
	uint64_t lease_limit_ms, lease_last_ok_ns, lease_late_ns;
	const char *reason; /* NULL, or a sentence */
};

/* Whose fault it is that a run could not be started, and so whether the same start may work again.
 */
enum run_fault {
	RUN_FAULT_TASK,  /* the task's own: it will not */
	RUN_FAULT_NODE,  /* this machine's: it may, later */
	RUN_FAULT_AGENT, /* a process of drover died over it: it was not tried to its end */
};

/* What the task runner hears, each from the work loop and never from within a call below. */
struct run_events {
	/* The task runs (also when a run was restored and still does). */
	void (*started)(void *arg, const struct exe_hello *hello);
	/* It could not be started: the sentence. Nothing of it runs once it is reaped. */
	void (*failed)(void *arg, const char *sentence, enum run_fault fault);
	void (*ended)(void *arg, const struct run_end *end);
};

/*
 * Makes the row, commits, sends the request (its run field is filled in here). spec_fd is taken
 * over. NULL: no memory.
 */
struct run *run_start(struct sup *sup, const struct id *alloc, const char *task,
    struct exec_task_start_req *req, int spec_fd, const struct run_events *ev, void *arg);

/* A run of this alloc is reaped and its row is deleted. */
typedef void run_gone_cb(struct sup *sup, const struct id *alloc);

/*
 * At start: reads the rows; gone is called for each run from then on. run_find() then gives the one
 * of a task, which run_follow() takes up: connects, or reads the record, or finds that it is lost,
 * and says so by the events. Those nobody took are reaped by run_reap_others().
 */
int runs_load(struct sup *sup, run_gone_cb *gone, struct err *e);
struct run *run_find(struct sup *sup, const struct id *alloc, const char *task);
void run_follow(struct run *r, const struct run_events *ev, void *arg);
void runs_reap_others(struct sup *sup);

/* After this turn's commit. A run that is still being started is stopped as soon as it can be. */
void run_stop(struct run *r, int signo, uint64_t timeout_ms);
/* How an executor stops its task without being told. */
struct run_own_stop {
	uint64_t limit_ms; /* of stop_after_client_disconnect; 0: none */
	uint32_t kill_signal;
	uint64_t kill_timeout_ms;
};

/* As the job has it now. Told to the executor when it has it otherwise; also at its next HELLO. */
void run_set_own_stop(struct run *r, const struct run_own_stop *wanted);
void run_signal(struct run *r, int signo);

/*
 * After failed or ended, once what they said is in its row: reaps, deletes the row, frees r. No
 * event comes any more. A reap that fails is tried again; the callback of runs_load() tells its
 * end.
 */
void run_release(struct run *r);
/* What is left of a run without a row: reaped as one that has one, but neither known nor counted.
 */
void run_reap_unknown(struct sup *sup, const struct id *id);
/* Is there a run of this task? Until it is reaped, something of it may be alive. */
bool run_is_left(struct sup *sup, const struct id *alloc, const char *task);

const struct id *run_id(const struct run *r);
/* It was started in another boot: nothing of it can be alive, whatever its row says. */
bool run_is_of_other_boot(const struct run *r);
/* Is this id one that a row knows? For leaks. */
bool run_is_known(struct sup *sup, const struct id *id);
/* Number of rows, with those that wait for their reap. */
unsigned runs_count(struct sup *sup);
void runs_free(struct sup *sup);

#endif
