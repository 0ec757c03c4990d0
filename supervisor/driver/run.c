// SPDX-License-Identifier: Apache-2.0
/* run.c: one start of one task, and the messages with its executor. Runs in: supervisor. */
#include "supervisor/driver/run.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/hash.h"
#include "common/list.h"
#include "common/log.h"
#include "common/mem.h"
#include "proto/container_ids.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/driver/run_result.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/driver/run_watch.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"

#define STOP_GRACE_USEC 10000000 /* the executor's time for a stop beyond the kill timeout */
#define RETRY_USEC      20000    /* until the next connect() */
#define RETRIES_MAX     250      /* 5 s in which an executor may be too busy to accept */
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
	bool greeted;          /* HELLO was received on this connection */
	uint16_t failed_mount; /* 1 + its number; 0: the start did not fail at one */
	struct run_own_stop own_stop, exe_own_stop; /* the job's; the executor's */
	uint64_t exe_lease_dev, exe_lease_ino;
	bool following; /* run_follow() was called, and the run has not been found yet */
	struct dirty row;
	int fd, spec;            /* spec: that of the start, while RUN_STARTING; -1: none */
	struct task_socket *api; /* NULL: none, or the executor is not connected */
	struct run_watch watch;
	struct sup_timer later, overdue;
	unsigned retries;
	uint64_t call;
	const struct run_events *ev;
	void *arg;
	struct deferred send;
	bool want_stop, stop_sent;
	int stop_signal;
	uint64_t signals; /* to be sent: bit n - 1 is signal n */
	uint64_t stop_timeout_ms;
	uint64_t step_ns; /* CLOCK_BOOTTIME: since when it is in this step of its start; 0: not */
};

struct runs {
	struct hash_table by_id, by_alloc;
	run_gone_cb *gone;
	const struct run_socket_ops *sockets; /* NULL: nobody serves them */
	unsigned n;                           /* that have a row */
	unsigned n_following, n_followed;     /* the last supervisor's runs: to be found, found */
	struct run_counts counts;
	uint64_t ranges[CONTAINER_RANGES / 64]; /* bits of the ranges of ids that runs have */
};

static void
disconnect(struct run *r)
{
	if (r->api)
		r->sup->runs->sockets->close(steal_ptr(&r->api));
	run_watch_remove(r->sup, &r->watch);
	sup_timer_cancel(&r->later);
	close_p(&r->fd);
	r->greeted = false;
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
	turn_forget_deferred(r->sup, &r->send);
	turn_forget_write(r->sup, &r->row);
	child_call_cancel(r->sup, r->call);
	if (r->id_range)
		r->sup->runs->ranges[r->id_range / 64] &= ~(1ull << r->id_range % 64);
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
	if (state != RUN_STARTING)
		close_p(&r->spec);
	turn_write(r->sup, &r->row);
}

static void send_orders(struct sup *sup, struct deferred *d);
static void on_ready(struct run_watch *w);

static struct run *
run_new(struct sup *sup, const struct id *id, const struct id *alloc, const char *task)
{
	struct run *r = mem_new(struct run);
	struct runs *runs = sup->runs;

	*r = (struct run){ .sup = sup,
		.id = *id,
		.alloc = *alloc,
		.fd = -1,
		.spec = -1,
		.task = mem_strdup(task) };
	r->row.write = write_row;
	r->row.point = CRASH_ROW_RUN;
	r->row.written = on_written;
	r->send.run = send_orders;
	r->watch = (struct run_watch){ .fd = -1, .ready = on_ready };
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
	char sentence[512];

	if (step == EXE_STEP_MOUNT && detail < EXEC_MOUNTS_MAX)
		r->failed_mount = (uint16_t)(detail + 1);
	run_text_failure(sentence, sizeof sentence, step, error, detail, r->spec);
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

/* Returns true if the executor's limit or way to kill is not the job's any more. Executors of
 * version 1 have no field for the way to kill. */
static bool
own_stop_differs(const struct run *r)
{
	const struct run_own_stop *job = &r->own_stop, *exe = &r->exe_own_stop;

	return job->limit_ms != exe->limit_ms ||
	       (exe->kill_signal != 0 && (job->kill_signal != exe->kill_signal ||
					     job->kill_timeout_ms != exe->kill_timeout_ms));
}

/*
 * Sends the executor the current lease page, if it reads another one (it would stop its task
 * although beats arrive), and the job's limit and way to kill, if they have changed.
 */
static void
renew_own_stop(struct run *r)
{
	const struct exe_lease m = { .head = { EXE_PROTO_VERSION, EXE_LEASE, sizeof m },
		.limit_ms = r->own_stop.limit_ms,
		.kill_signal = r->own_stop.kill_signal,
		.kill_timeout_ms = r->own_stop.kill_timeout_ms };
	cleanup_close int fd = -1;
	struct stat st = { .st_dev = r->exe_lease_dev, .st_ino = r->exe_lease_ino };
	struct err e = { 0 };
	bool page;

	if (r->own_stop.limit_ms != 0) {
		fd = lease_page_open(r->sup, &st, &e);
		if (fd < 0) {
			log_warn("%s", e.msg);
			return;
		}
	}
	page = st.st_dev != r->exe_lease_dev || st.st_ino != r->exe_lease_ino;
	if (!page && !own_stop_differs(r))
		return;
	if (fd_send_msg(r->fd, &m, sizeof m, &fd, page, MSG_DONTWAIT) < 0) {
		log_warn(
		    "task %s: its lease could not be renewed: its executor does not read", r->task);
		return;
	}
	r->exe_own_stop = r->own_stop;
	r->exe_lease_dev = st.st_dev;
	r->exe_lease_ino = st.st_ino;
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
on_hello(struct run *r, const struct exe_hello *h)
{
	switch (h->state) {
	case EXE_SETTING_UP:
		break;
	case EXE_RUNNING:
	case EXE_STOPPING:
		note_followed(r);
		r->exe_own_stop = (struct run_own_stop){ .limit_ms = h->lease_ms,
			.kill_signal = h->kill_signal,
			.kill_timeout_ms = h->kill_timeout_ms };
		r->exe_lease_dev = h->lease_dev;
		r->exe_lease_ino = h->lease_ino;
		r->greeted = true;
		renew_own_stop(r);
		if (r->state == RUN_STARTING && r->step_ns)
			end_step(r, &r->sup->runs->counts.setup);
		if (r->state == RUN_STARTING)
			set_state(r, RUN_STARTED);
		if (r->ev)
			r->ev->started(r->arg, h);
		break;
	case EXE_FAILED:
		report_failed_step(r, h->step, h->error, h->detail);
		return;
	default: /* EXE_ENDED: EXITED or the end of the connection follows */
		break;
	}
	if (r->want_stop || r->signals)
		turn_defer(r->sup, &r->send);
}

/* The task's socket for requests of the API. */
static void
on_api(struct run *r, int *fd)
{
	struct err e = { 0 };

	if (*fd < 0 || r->api || !r->sup->runs->sockets)
		return;
	r->api = r->sup->runs->sockets->open(r->sup, steal_fd(fd), &r->alloc, r->task, &e);
	if (!r->api)
		log_warn("task %s: %s", r->task, e.msg);
}

/* EXITED has the contents of the record, so the file need not be read. */
static void
on_exited(struct run *r, const struct exe_exited *x)
{
	struct run_end end = { .known = !(x->flags & EXE_END_UNKNOWN),
		.flags = x->flags,
		.exit_code = x->exit_code,
		.exit_signal = x->exit_signal,
		.ended_real_ns = x->ended_real_ns,
		.lease_limit_ms = x->lease_limit_ms,
		.lease_last_ok_ns = x->lease_last_ok_ns,
		.lease_late_ns = x->lease_late_ns };

	report_end(r, &end);
}

static void
on_ready(struct run_watch *w)
{
	union exe_from m;
	struct run *r = container_of(w, struct run, watch);
	cleanup_close int fd = -1;
	size_t n = 0;
	ssize_t len;

	memset(&m, 0, sizeof m);
	len = fd_recv_msg(r->fd, &m, sizeof m, &fd, 1, &n, MSG_DONTWAIT);
	if (len == -EAGAIN)
		return;
	if (len < (ssize_t)sizeof m.head) {
		disconnect(r);
		read_end(r);
		return;
	}
	if ((m.head.type == EXE_HELLO || m.head.type == EXE_STATE) &&
	    (size_t)len >= EXE_HELLO_V1_SIZE)
		on_hello(r, &m.hello);
	else if (m.head.type == EXE_EXITED && (size_t)len >= sizeof m.exited)
		on_exited(r, &m.exited);
	else if (m.head.type == EXE_API)
		on_api(r, &fd);
	/* Other messages are those of a newer executor and are ignored: the end is in its record.
	 */
}

static void connect_run(struct run *r);

static void
on_retry(void *arg)
{
	struct run *r = arg;

	connect_run(r);
}

static void
retry_soon(struct run *r)
{
	if (r->retries++ >= RETRIES_MAX)
		report_lost(r, "its executor does not accept a connection");
	else
		sup_timer_set(r->sup, &r->later, CLOCK_MONOTONIC, RETRY_USEC, on_retry, r);
}

/* connect() succeeds exactly while the run has an executor or is being given one. */
static void
connect_run(struct run *r)
{
	struct sockaddr_un sa = { .sun_family = AF_UNIX };
	cleanup_close int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	char hex[ID_HEX_SIZE];

	id_to_hex(&r->id, hex);
	(void)snprintf(
	    sa.sun_path, sizeof sa.sun_path, "/proc/self/fd/%d/%s.sock", r->sup->sock_dir_fd, hex);
	if (fd < 0) {
		retry_soon(r);
		return;
	}
	if (connect(fd, (struct sockaddr *)&sa, sizeof sa) < 0) {
		if (errno == EAGAIN || errno == EINTR)
			retry_soon(r);
		else
			read_end(r);
		return;
	}
	if (run_watch_add(r->sup, &r->watch, fd) < 0) {
		retry_soon(r);
		return;
	}
	r->fd = steal_fd(&fd);
}

/* Sends what was requested in the turn: signals and the stop. */
static void
send_orders(struct sup *sup, struct deferred *d)
{
	struct run *r = container_of(d, struct run, send);

	if (r->fd < 0)
		return;
	if (r->greeted)
		renew_own_stop(r);
	for (uint32_t signo = 1; r->signals; signo++, r->signals >>= 1) {
		const struct exe_signal m = { .head = { EXE_PROTO_VERSION, EXE_SIGNAL, sizeof m },
			.signal = signo };

		if (r->signals & 1)
			(void)fd_send_msg(r->fd, &m, sizeof m, NULL, 0, MSG_DONTWAIT);
	}
	if (r->want_stop && !r->stop_sent) {
		const struct exe_stop m = { .head = { EXE_PROTO_VERSION, EXE_STOP, sizeof m },
			.signal = (uint32_t)r->stop_signal,
			.timeout_ms = r->stop_timeout_ms };

		r->stop_sent = fd_send_msg(r->fd, &m, sizeof m, NULL, 0, MSG_DONTWAIT) == 0;
	}
}

static void
on_start_reply(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	struct run *r = arg;

	r->call = 0;
	if (code >= 0) {
		end_step(r, &sup->runs->counts.request);
		connect_run(r);
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
	if (range == 0 || range >= CONTAINER_RANGES)
		return;
	r->id_range = range;
	r->sup->runs->ranges[range / 64] |= 1ull << range % 64;
}

/* Without a free range, the request has none, and exec-helper refuses it. */
static void
fill_container(struct run *r, struct exec_task_start_req *req)
{
	const uint64_t *ranges = r->sup->runs->ranges;
	uint32_t range = 1;

	while (range < CONTAINER_RANGES && (ranges[range / 64] >> range % 64 & 1))
		range++;
	take_range(r, range);
	req->start.id_range = r->id_range;
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

int
runs_load(struct sup *sup, run_gone_cb *gone, struct err *e)
{
	sup->runs->gone = gone;
	return store_each(sup->store, STMT_RUN_ALL, NULL, 0, load_row, sup, e);
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
		connect_run(r);
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
	r->want_stop = true;
	r->stop_sent = false;
	r->stop_signal = signo;
	r->stop_timeout_ms = timeout_ms;
	turn_defer(r->sup, &r->send);
}

void
run_set_own_stop(struct run *r, const struct run_own_stop *wanted)
{
	r->own_stop = *wanted;
	turn_defer(r->sup, &r->send);
}

void
run_signal(struct run *r, int signo)
{
	r->signals |= 1ULL << (signo - 1);
	turn_defer(r->sup, &r->send);
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
		unsigned n = r->retries < REAP_DOUBLINGS ? r->retries++ : REAP_DOUBLINGS;

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
	r->retries = 0;
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
	struct run *r;

	if (find_by_id(sup, id))
		return;
	r = run_new(sup, id, &(struct id){ 0 }, "(unknown)");
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
