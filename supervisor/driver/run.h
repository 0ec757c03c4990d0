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
#include "supervisor/core/histogram.h"
#include "supervisor/core/sup.h"

struct run;
struct task_socket;

/* How a run ended. */
struct run_end {
	bool known;     /* false: its exit status is unknown; reason says why */
	bool rebooted;  /* the machine was rebooted during the run */
	uint32_t flags; /* enum exe_end_flag */
	int exit_code, exit_signal;
	uint64_t ended_real_ns; /* 0: unknown */
	uint64_t lease_limit_ms, lease_last_ok_ns, lease_late_ns;
	const char *reason; /* NULL, or a sentence */
};

/* Why a run could not be started: says whether the same start may work later. */
enum run_fault {
	RUN_FAULT_TASK,  /* the task's settings: it will fail again */
	RUN_FAULT_NODE,  /* this machine lacks a resource: it may work later */
	RUN_FAULT_AGENT, /* a process of drover died during the start: it may work at once */
};

/* Callbacks for the task runner: called from the work loop, never from within a call below. */
struct run_events {
	/* The task runs; also called when a run of the last supervisor is found running. */
	void (*started)(void *arg, const struct exe_hello *hello);
	/* The task could not be started. After the reap no process of the run is left. */
	void (*failed)(void *arg, const char *sentence, enum run_fault fault);
	void (*ended)(void *arg, const struct run_end *end);
};

void runs_new(struct sup *sup);
void runs_free(struct sup *sup);

/* How the sockets of tasks are served, which executors pass on: open() takes over the listening
 * socket fd, also on failure, and returns NULL with *e then; close() is called when the run has
 * ended. */
struct run_socket_ops {
	struct task_socket *(*open)(
	    struct sup *sup, int fd, const struct id *alloc, const char *task, struct err *e);
	void (*close)(struct task_socket *s);
};
/* To be called before the work loop runs. ops must stay valid. */
void runs_serve_sockets(struct sup *sup, const struct run_socket_ops *ops);

/* Writes the row and sends the request after the commit. Fills in the request's run field and takes
 * over spec_fd. */
struct run *run_start(struct sup *sup, const struct id *alloc, const char *task,
    struct exec_task_start_req *req, int spec_fd, const struct run_events *ev, void *arg);

/* Called when a run of this alloc is reaped and its row is deleted. */
typedef void run_gone_cb(struct sup *sup, const struct id *alloc);

/*
 * At start, runs_load() reads the rows; gone is called for each run from then on. run_find()
 * returns the run of a task that has not ended and has no events yet, or NULL. run_follow()
 * connects to its executor or reads its record, and reports the result as an event.
 * runs_reap_others() reaps the runs that nobody follows.
 */
int runs_load(struct sup *sup, run_gone_cb *gone, struct err *e);
struct run *run_find(struct sup *sup, const struct id *alloc, const char *task);
void run_follow(struct run *r, const struct run_events *ev, void *arg);
void runs_reap_others(struct sup *sup);

/* Stops the task after this turn's commit. A run that is still being started is stopped as soon as
 * its executor is connected. */
void run_stop(struct run *r, int signo, uint64_t timeout_ms);
/* How an executor stops its task by itself, when the lease is too old. */
struct run_own_stop {
	uint64_t limit_ms; /* stop_after_client_disconnect; 0: none */
	uint32_t kill_signal;
	uint64_t kill_timeout_ms;
};

/* Sets the values of the current job. They are sent to the executor if it has other values, also
 * after a reconnect. */
void run_set_own_stop(struct run *r, const struct run_own_stop *wanted);
void run_signal(struct run *r, int signo);

/*
 * To be called after failed() or ended(), once the result is in the task's row: reaps the run,
 * deletes its row and frees r. No more events come. A reap that fails is repeated; the callback of
 * runs_load() reports its end.
 */
void run_release(struct run *r);
/* Reaps a leftover run that has no row; it is neither known (run_is_known()) nor counted. */
void run_reap_unknown(struct sup *sup, const struct id *id);
/* Returns true if there is a run of this task; until it is reaped, a process of it may be alive. */
bool run_is_left(struct sup *sup, const struct id *alloc, const char *task);

/* In failed(): returns the number of the mount of the request that could not be made; -1: that was
 * not the reason. */
int run_failed_mount(const struct run *r);

const struct id *run_id(const struct run *r);
/* Returns the number of a container's range of ids; 0 for a run that is no container. */
uint32_t run_id_range(const struct run *r);
/* Returns whether a container has the layer with these 64 digits. */
bool runs_have_layer(struct sup *sup, const char *digits);
/* Returns the layers of a container, 64 digits each, the highest first; "": it has none. */
const char *run_layers(const struct run *r);
/* Returns whether a container has exactly these layers. */
bool runs_have_layers(struct sup *sup, const char *layers);
/* Returns true if the run was started before a reboot: nothing of it is alive. */
bool run_is_of_other_boot(const struct run *r);
/* Returns true if there is a row of this run. */
bool run_is_known(struct sup *sup, const struct id *id);
/* Returns the number of rows, including those of runs that wait for their reap. */
unsigned runs_count(struct sup *sup);

/* For the metrics: the durations of the steps of starts that succeeded. */
struct run_counts {
	struct histogram request; /* until exec-helper has made the executor, with the commit */
	struct histogram setup;   /* from there until the executor reports that the task runs */
};
const struct run_counts *runs_counts(const struct sup *sup);

#endif
