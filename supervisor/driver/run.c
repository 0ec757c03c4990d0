// SPDX-License-Identifier: Apache-2.0
/* run.c: one start of one task, and the messages with its executor. Runs in: supervisor. */
#include "supervisor/driver/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/hash.h"
#include "common/list.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/run_link.h"
#include "supervisor/driver/run_ranges.h"
#include "supervisor/driver/run_result.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"

#define STOP_GRACE_USEC 10000000 /* the executor's time for a stop beyond the kill timeout */
#define REAP_USEC       20000    /* until the second try of a reap; doubled for each further one */
#define REAP_DOUBLINGS  9        /* up to 10 s: a process may hang in the kernel forever */
#define REAP_WARN       5        /* the try (after 0.6 s) whose failure is logged as a warning */

/* The number is in the row. */
enum run_state {
	RUN_STARTING = 1, /* the request may have been sent */
	RUN_STARTED = 2,  /* the executor reported that the task runs */
	RUN_ENDED = 3,    /* waits for its reap */
	RUN_GONE = 4,     /* reaped: its row is being deleted */
};

struct run {
	struct hash_link by_id, by_alloc;
	struct sup *sup;
	struct id id, alloc;
	char *task;
	enum run_state state;
	uint32_t id_range; /* of a container; 0: none */
	char *layers;      /* of a container: 64 digits of each; NULL: none */
	bool other_boot;
	bool leftover;         /* has no row: a leak until it is reaped */
	struct strings dests;  /* of its mounts, while RUN_STARTING */
	uint16_t failed_mount; /* 1 + its number; 0: the start did not fail at one */
	bool following;        /* run_follow() was called, and the run has not been found yet */
	struct dirty row;
	int spec;                /* that of the start, while RUN_STARTING; -1: none */
	struct task_socket *api; /* NULL: none, or the executor is not connected */
	struct run_link link;
	struct sup_timer later, overdue;
	unsigned reap_tries;
	uint64_t call;
	const struct run_events *ev;
	void *arg;
	uint64_t step_ns; /* CLOCK_BOOTTIME: since when it is in this step of its start; 0: not */
};

struct runs {
	struct hash_table by_id, by_alloc;
	run_gone_cb *gone;
	const struct run_socket_ops *sockets; /* NULL: nobody serves them */
	unsigned n;                           /* that have a row */
	unsigned n_following, n_followed;     /* the last supervisor's runs: to be found, found */
	struct run_counts counts;
	struct run_ranges ranges; /* of ids that runs have */
};

static void
disconnect(struct run *r)
{
	if (r->api)
		r->sup->runs->sockets->close(steal_ptr(&r->api));
	run_link_close(&r->link);
	sup_timer_cancel(&r->later);
}

static void
run_free(struct run *r)
{
	struct runs *runs = r->sup->runs;

	hash_remove(&runs->by_id, &r->by_id);
	hash_remove(&runs->by_alloc, &r->by_alloc);
	runs->n -= !r->leftover;
	disconnect(r);
	sup_timer_cancel(&r->overdue);
	close_p(&r->spec);
	strings_done(&r->dests);
	run_link_free(&r->link);
	turn_forget_write(r->sup, &r->row);
	child_call_cancel(r->sup, r->call);
	run_range_free(&runs->ranges, r->id_range);
	free(r->layers);
	free(r->task);
	free(r);
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct run *r = container_of(d, struct run, row);

	if (r->state == RUN_GONE)
		return STORE_EXEC(sup->store, STMT_RUN_DELETE, e, SV_ID(&r->id));
	return STORE_EXEC(sup->store, STMT_RUN_PUT, e, SV_ID(&r->id), SV_ID(&r->alloc),
	    SV_TEXT(r->task), SV_INT(r->state), SV_TEXT(sup->boot_id), SV_INT(r->id_range),
	    SV_TEXT(r->layers));
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct run *r = container_of(d, struct run, row);
	struct id alloc = r->alloc;

	if (r->state != RUN_GONE)
		return;
	run_free(r);
	if (sup->runs->gone)
		sup->runs->gone(sup, &alloc);
	changed_mark(sup, CHANGED_WORK);
}

static void
set_state(struct run *r, enum run_state state)
{
	r->state = state;
	if (state != RUN_STARTING) {
		close_p(&r->spec);
		strings_done(&r->dests);
	}
	turn_write(r->sup, &r->row);
}

static const struct run_link_ops link_ops;

static struct run *
run_new(struct sup *sup, const struct id *id, const struct id *alloc, const char *task)
{
	struct run *r = mem_new(struct run);
	struct runs *runs = sup->runs;

	*r = (struct run){
		.sup = sup, .id = *id, .alloc = *alloc, .spec = -1, .task = mem_strdup(task)
	};
	r->row.write = write_row;
	r->row.point = CRASH_ROW_RUN;
	r->row.written = on_written;
	run_link_init(&r->link, sup, &link_ops, &r->id, r->task);
	hash_add(&runs->by_id, &r->by_id, hash_id(id));
	hash_add(&runs->by_alloc, &r->by_alloc, hash_id(alloc));
	runs->n++;
	return r;
}

/* Logs it once the last of the last supervisor's runs is found. */
static void
note_followed(struct run *r)
{
	struct runs *runs = r->sup->runs;

	if (!r->following)
		return;
	r->following = false;
	runs->n_followed++;
	if (--runs->n_following == 0)
		log_info("recovered %u running task%s", runs->n_followed,
		    runs->n_followed == 1 ? "" : "s");
}

static void
report_end(struct run *r, const struct run_end *end)
{
	note_followed(r);
	disconnect(r);
	set_state(r, RUN_ENDED);
	if (r->ev)
		r->ev->ended(r->arg, end);
}

static void
report_failure(struct run *r, const char *sentence, enum run_fault fault)
{
	note_followed(r);
	disconnect(r);
	set_state(r, RUN_ENDED);
	if (r->ev)
		r->ev->failed(r->arg, sentence, fault);
}

static void
report_lost(struct run *r, const char *reason)
{
	const struct run_end end = { .flags = EXE_END_UNKNOWN,
		.rebooted = r->other_boot,
		.reason = r->other_boot ? "the machine was rebooted" : reason };

	report_end(r, &end);
}

/* ECHILD: the process was killed before it became the task. EAGAIN, ENOMEM, EMFILE and ENFILE: the
 * machine lacks a resource. */
static enum run_fault
fault_of(int error)
{
	if (error == ECHILD)
		return RUN_FAULT_AGENT;
	return error == EAGAIN || error == ENOMEM || error == EMFILE || error == ENFILE
		   ? RUN_FAULT_NODE
		   : RUN_FAULT_TASK;
}

static void
report_failed_step(struct run *r, uint32_t step, int error, uint32_t detail)
{
	const char *dest = step == EXE_STEP_MOUNT && detail < r->dests.n ? r->dests.v[detail] : "";
	char sentence[512];

	if (step == EXE_STEP_MOUNT && detail < EXEC_MOUNTS_MAX)
		r->failed_mount = (uint16_t)(detail + 1);
	run_text_failure(sentence, sizeof sentence, step, error, detail, r->spec, dest);
	report_failure(r, sentence, fault_of(error));
}

/* The executor has exited: reports how the run ended, from its record. */
static void
read_end(struct run *r)
{
	struct exe_record rec;
	struct run_end end;
	int err = run_result_read(r->sup->run_dir_fd, &r->id, &rec);

	if (r->state == RUN_STARTING && (err < 0 || rec.state == EXE_SETTING_UP)) {
		report_failure(r,
		    err < 0 ? "it was never started: it has no executor"
			    : "its executor was lost before the task was started",
		    RUN_FAULT_AGENT);
		return;
	}
	if (err < 0) {
		report_lost(r, "its executor was lost and left no record");
		return;
	}
	if (rec.state == EXE_FAILED) {
		report_failed_step(r, rec.step, rec.error, rec.detail);
		return;
	}
	if (rec.state != EXE_ENDED) {
		report_lost(r, "its executor was lost");
		return;
	}
	end = run_result_end(&rec);
	report_end(r, &end);
}

/* Counts the step of the start that ends now; the next one begins. */
static void
end_step(struct run *r, struct histogram *h)
{
	const uint64_t now = clock_boot_ns();

	if (r->step_ns)
		histogram_add(h, (now - r->step_ns) / 1000);
	r->step_ns = now;
}

static void
on_hello(struct run_link *l, const struct exe_hello *h)
{
	struct run *r = container_of(l, struct run, link);

	switch (h->state) {
	case EXE_SETTING_UP:
		break;
	case EXE_RUNNING:
	case EXE_STOPPING:
		note_followed(r);
		if (r->state == RUN_STARTING && r->step_ns)
			end_step(r, &r->sup->runs->counts.setup);
		if (r->state == RUN_STARTING)
			set_state(r, RUN_STARTED);
		if (r->ev)
			r->ev->started(r->arg, h);
		break;
	case EXE_FAILED:
		report_failed_step(r, h->step, h->error, h->detail);
		break;
	default: /* EXE_ENDED: EXITED or the end of the connection follows */
		break;
	}
}

/* The task's socket for requests of the API. */
static void
on_api(struct run_link *l, int *fd)
{
	struct run *r = container_of(l, struct run, link);
	struct err e = { 0 };

	if (*fd < 0 || r->api || !r->sup->runs->sockets)
		return;
	r->api = r->sup->runs->sockets->open(r->sup, steal_fd(fd), &r->alloc, r->task, &e);
	if (!r->api)
		log_warn("task %s: %s", r->task, e.msg);
}

/* EXITED has the contents of the record, so the file need not be read. */
static void
on_exited(struct run_link *l, const struct exe_exited *x)
{
	struct run_end end = { .known = !(x->flags & EXE_END_UNKNOWN),
		.flags = x->flags,
		.exit_code = x->exit_code,
		.exit_signal = x->exit_signal,
		.ended_real_ns = x->ended_real_ns,
		.lease_limit_ms = x->lease_limit_ms,
		.lease_last_ok_ns = x->lease_last_ok_ns,
		.lease_late_ns = x->lease_late_ns };

	report_end(container_of(l, struct run, link), &end);
}

static void
on_gone(struct run_link *l)
{
	read_end(container_of(l, struct run, link));
}

static void
on_stuck(struct run_link *l)
{
	report_lost(container_of(l, struct run, link), "its executor does not accept a connection");
}

static const struct run_link_ops link_ops = {
	.hello = on_hello,
	.exited = on_exited,
	.api = on_api,
	.gone = on_gone,
	.stuck = on_stuck,
};

static void
on_start_reply(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	struct run *r = arg;

	r->call = 0;
	if (code >= 0) {
		end_step(r, &sup->runs->counts.request);
		run_link_connect(&r->link);
	} else if (code == -ECONNRESET || code == -ETIMEDOUT) {
		report_failure(r, e->msg, RUN_FAULT_AGENT);
	} else {
		report_failure(r, e->msg, fault_of(-code));
	}
}

/* --- containers --- */

static void
take_range(struct run *r, uint32_t range)
{
	if (run_range_take(&r->sup->runs->ranges, range))
		r->id_range = range;
}

/* A container with the machine's ids needs no range. Without a free range, the request of another
 * one has none, and exec-helper refuses it. */
static void
fill_container(struct run *r, struct exec_task_start_req *req)
{
	if (!req->start.host_ids)
		req->start.id_range = r->id_range = run_range_find(&r->sup->runs->ranges);
	r->layers = mem_alloc(req->n_layers * 64 + 1);
	for (uint32_t i = 0; i < req->n_layers * 32; i++)
		(void)snprintf(r->layers + 2 * i, 3, "%02x", ((const uint8_t *)req->layers)[i]);
	r->layers[req->n_layers * 64] = '\0';
}

uint32_t
run_id_range(const struct run *r)
{
	return r->id_range;
}

bool
runs_have_layer(struct sup *sup, const char *digits)
{
	const struct hash_table *t = &sup->runs->by_id;

	for (struct hash_link *l = hash_each(t, NULL); l; l = hash_each(t, l)) {
		const struct run *r = container_of(l, struct run, by_id);

		for (const char *at = r->layers; at && *at; at += 64)
			if (memcmp(at, digits, 64) == 0)
				return true;
	}
	return false;
}

const char *
run_layers(const struct run *r)
{
	return r->layers ? r->layers : "";
}

bool
runs_have_layers(struct sup *sup, const char *layers)
{
	const struct hash_table *t = &sup->runs->by_id;

	for (struct hash_link *l = hash_each(t, NULL); l; l = hash_each(t, l)) {
		const struct run *r = container_of(l, struct run, by_id);

		if (r->layers && strcmp(r->layers, layers) == 0)
			return true;
	}
	return false;
}

struct run *
run_start(struct sup *sup, const struct id *alloc, const char *task,
    struct exec_task_start_req *req, int spec_fd, const struct run_events *ev, void *arg)
{
	struct id id = id_random();
	struct run *r = run_new(sup, &id, alloc, task);

	r->ev = ev;
	r->arg = arg;
	if (driver_has_containers(req->start.driver))
		fill_container(r, req);
	set_state(r, RUN_STARTING);
	r->step_ns = clock_boot_ns();
	req->start.run = r->id;
	for (uint32_t i = 0; i < req->n_mounts; i++)
		strings_add(&r->dests, req->mounts[i].dest);
	r->spec = fcntl(spec_fd, F_DUPFD_CLOEXEC, 0);
	r->call = exec_call_task_start(sup, req, spec_fd, on_start_reply, r);
	return r;
}

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	struct sup *sup = arg;
	struct id id, alloc;
	struct run *r;

	if (!store_col_id(row, 0, &id) || !store_col_id(row, 1, &alloc)) {
		journal_error(JOURNAL_STATE, NULL, "state.db: a run has no id; its row is ignored");
		return 0;
	}
	r = run_new(sup, &id, &alloc, store_col_text(row, 2));
	r->state = (enum run_state)store_col_int(row, 3);
	r->other_boot = strcmp(store_col_text(row, 4), sup->boot_id) != 0;
	take_range(r, (uint32_t)store_col_int(row, 5));
	if (store_col_text(row, 6)[0])
		r->layers = mem_strdup(store_col_text(row, 6));
	return 0;
}

void
runs_new(struct sup *sup)
{
	sup->runs = mem_new(struct runs);
	run_poll_new(sup);
}

void
runs_serve_sockets(struct sup *sup, const struct run_socket_ops *ops)
{
	sup->runs->sockets = ops;
}

static bool
is_loaded(void *arg, const struct id *run)
{
	return run_is_known(arg, run);
}

int
runs_load(struct sup *sup, run_gone_cb *gone, struct err *e)
{
	int r;

	sup->runs->gone = gone;
	r = store_each(sup->store, STMT_RUN_ALL, NULL, 0, load_row, sup, e);
	return r < 0 ? r
		     : run_ranges_read(
			   &sup->runs->ranges, sup->run_dir_fd, sup->boot_id, is_loaded, sup, e);
}

/* Returns the run of this task after r; r is NULL for the first one. */
static struct run *
next_of_task(struct sup *sup, struct run *r, const struct id *alloc, const char *task)
{
	struct hash_link *l =
	    r ? hash_next(&r->by_alloc) : hash_first(&sup->runs->by_alloc, hash_id(alloc));

	for (; l; l = hash_next(l)) {
		r = container_of(l, struct run, by_alloc);
		if (id_equal(&r->alloc, alloc) && strcmp(r->task, task) == 0)
			return r;
	}
	return NULL;
}

struct run *
run_find(struct sup *sup, const struct id *alloc, const char *task)
{
	for (struct run *r = next_of_task(sup, NULL, alloc, task); r;
	     r = next_of_task(sup, r, alloc, task))
		if (!r->ev && r->state < RUN_ENDED)
			return r;
	return NULL;
}

bool
run_is_left(struct sup *sup, const struct id *alloc, const char *task)
{
	return next_of_task(sup, NULL, alloc, task) != NULL;
}

static void
on_follow(void *arg)
{
	struct run *r = arg;

	/* After a reboot nothing of the run is alive; its record may have how it ended. */
	if (r->other_boot)
		read_end(r);
	else
		run_link_connect(&r->link);
}

void
run_follow(struct run *r, const struct run_events *ev, void *arg)
{
	r->ev = ev;
	r->arg = arg;
	r->following = true;
	r->sup->runs->n_following++;
	sup_timer_set(r->sup, &r->later, CLOCK_MONOTONIC, 0, on_follow, r);
}

void
runs_reap_others(struct sup *sup)
{
	const struct hash_table *t = &sup->runs->by_id;

	for (struct hash_link *l = hash_each(t, NULL); l; l = hash_each(t, l)) {
		struct run *r = container_of(l, struct run, by_id);

		if (!r->ev && !r->call && r->state != RUN_GONE)
			run_release(r);
	}
}

/* The executor should have killed the task by now. The reap kills its cgroup, which needs no
 * executor. */
static void
on_overdue(void *arg)
{
	struct run *r = arg;

	if (r->state < RUN_ENDED)
		report_lost(r, "its executor did not end it in time; its cgroup is killed");
}

void
run_stop(struct run *r, int signo, uint64_t timeout_ms)
{
	sup_timer_set(r->sup, &r->overdue, CLOCK_BOOTTIME, timeout_ms * 1000 + STOP_GRACE_USEC,
	    on_overdue, r);
	run_link_stop(&r->link, signo, timeout_ms);
}

void
run_set_own_stop(struct run *r, const struct run_own_stop *wanted)
{
	run_link_set_own_stop(&r->link, wanted);
}

void
run_signal(struct run *r, int signo)
{
	run_link_signal(&r->link, signo);
}

static void reap_run(struct run *r);

static void
on_reap_again(void *arg)
{
	struct run *r = arg;

	reap_run(r);
}

static void
on_reaped(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	const struct exec_run_reap_rep *reaped = rep;
	struct run *r = arg;

	r->call = 0;
	/* The row is kept, so the task does not start again before the reap, also if the supervisor
	 * ends. */
	if (code < 0) {
		unsigned n = r->reap_tries < REAP_DOUBLINGS ? r->reap_tries++ : REAP_DOUBLINGS;

		log_print(n == REAP_WARN || code != -EAGAIN ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		    "task %s: %s; it is tried again", r->task, e->msg);
		sup_timer_set(sup, &r->later, CLOCK_MONOTONIC, REAP_USEC << n, on_reap_again, r);
		return;
	}
	if (reaped->killed)
		log_info("a run of task %s still had processes; they were killed", r->task);
	set_state(r, RUN_GONE);
}

static void
reap_run(struct run *r)
{
	const struct exec_run_reap_req req = { .run = r->id };

	r->call = exec_call_run_reap(r->sup, &req, on_reaped, r);
}

void
run_release(struct run *r)
{
	r->ev = NULL;
	disconnect(r);
	if (r->state != RUN_ENDED)
		set_state(r, RUN_ENDED);
	child_call_cancel(r->sup, r->call);
	r->reap_tries = 0;
	reap_run(r);
}

static struct run *
find_by_id(struct sup *sup, const struct id *id)
{
	struct hash_link *l = hash_first(&sup->runs->by_id, hash_id(id));

	for (; l; l = hash_next(l)) {
		struct run *r = container_of(l, struct run, by_id);

		if (id_equal(&r->id, id))
			return r;
	}
	return NULL;
}

void
run_reap_unknown(struct sup *sup, const struct id *id)
{
	struct exe_record rec;
	struct run *r;

	if (find_by_id(sup, id))
		return;
	r = run_new(sup, id, &(struct id){ 0 }, "(unknown)");
	if (run_result_read(sup->run_dir_fd, id, &rec) == 0 &&
	    strcmp(rec.boot_id, sup->boot_id) == 0)
		take_range(r, rec.id_range);
	r->leftover = true;
	sup->runs->n--;
	r->state = RUN_ENDED;
	reap_run(r);
}

bool
run_is_of_other_boot(const struct run *r)
{
	return r->other_boot;
}

int
run_failed_mount(const struct run *r)
{
	return r->failed_mount - 1;
}

const struct id *
run_id(const struct run *r)
{
	return &r->id;
}

bool
run_is_known(struct sup *sup, const struct id *id)
{
	const struct run *r = find_by_id(sup, id);

	return r && !r->leftover;
}

const struct run_counts *
runs_counts(const struct sup *sup)
{
	return &sup->runs->counts;
}

unsigned
runs_count(struct sup *sup)
{
	return sup->runs->n;
}

void
runs_free(struct sup *sup)
{
	struct hash_link *l, *next;
	struct runs *runs = sup->runs;

	if (!runs)
		return;
	for (l = hash_each(&runs->by_id, NULL); l; l = next) {
		next = hash_each(&runs->by_id, l);
		run_free(container_of(l, struct run, by_id));
	}
	hash_done(&runs->by_id);
	hash_done(&runs->by_alloc);
	run_poll_free(sup);
	usage_roots_free(sup);
	free(runs);
	sup->runs = NULL;
}
