// SPDX-License-Identifier: Apache-2.0
/* run.c: one start of one task and the talk with its executor. Runs in: supervisor. */
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
#include "common/exe_record.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/log.h"
#include "supervisor/core/changed.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/driver/run_watch.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/driver/run_text.h"
#include "supervisor/driver/run_watch.h"

#define BUCKETS         4096     /* of runs: at most a few thousand are alive on one machine */
#define STOP_GRACE_USEC 10000000 /* beyond the kill timeout */
#define RETRY_USEC      20000
#define RETRIES_MAX     250 /* 5 s in which an executor may be too busy to accept */
#define REAP_USEC       20000
#define REAP_DOUBLINGS  9 /* up to 10 s: what hangs in the kernel may do so for ever */
#define REAP_TELL       5 /* after 0.6 s it is worth a line */

/* The number is in the row. */
enum run_state {
	RUN_STARTING = 1, /* the request may have been sent */
	RUN_STARTED = 2,  /* the executor said that the task runs */
	RUN_ENDED = 3,    /* waits for its reap */
	RUN_GONE = 4,     /* reaped: the row goes */
};

struct run {
	struct run *next, *next_of_alloc; /* in its buckets */
	struct sup *sup;
	struct id id, alloc;
	char *task;
	enum run_state state;
	bool other_boot;
	bool leftover;                              /* has no row: a leak until it is reaped */
	bool greeted;                               /* HELLO has come on this connection */
	struct run_own_stop own_stop, exe_own_stop; /* wanted; the executor's */
	uint64_t exe_lease_dev, exe_lease_ino;
	bool following; /* run_follow() has not been answered yet */
	struct dirty row;
	int fd;
	struct run_watch watch;
	sd_event_source *later, *overdue;
	unsigned retries;
	uint64_t call;
	const struct run_events *ev;
	void *arg;
	struct deferred send;
	bool want_stop, stop_sent;
	int stop_signal;
	uint64_t signals; /* not sent yet: bit n - 1 is signal n */
	uint64_t stop_timeout_ms;
};

static struct run *buckets[BUCKETS], *alloc_buckets[BUCKETS];
static run_gone_cb *on_gone;
static unsigned n_runs;
static unsigned n_following, n_followed; /* of the last supervisor's runs: left to find, found */

/* Ids are random, so any of their bytes are a hash. */
static uint32_t
hash(const struct id *id)
{
	uint32_t h;

	memcpy(&h, id->b, sizeof h);
	return h % BUCKETS;
}

static void
disconnect(struct run *r)
{
	run_watch_remove(&r->watch);
	r->later = sd_event_source_disable_unref(r->later);
	close_p(&r->fd);
	r->greeted = false;
}

static void
run_free(struct run *r)
{
	struct run **at = &buckets[hash(&r->id)], **of_alloc = &alloc_buckets[hash(&r->alloc)];

	while (*at != r)
		at = &(*at)->next;
	*at = r->next;
	while (*of_alloc != r)
		of_alloc = &(*of_alloc)->next_of_alloc;
	*of_alloc = r->next_of_alloc;
	n_runs -= !r->leftover;
	disconnect(r);
	r->overdue = sd_event_source_disable_unref(r->overdue);
	turn_forget_deferred(r->sup, &r->send);
	turn_forget_write(r->sup, &r->row);
	child_call_cancel(r->sup, r->call);
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
	    SV_TEXT(r->task), SV_INT(r->state), SV_TEXT(sup->boot_id));
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct run *r = container_of(d, struct run, row);
	struct id alloc = r->alloc;

	if (r->state != RUN_GONE)
		return;
	run_free(r);
	if (on_gone)
		on_gone(sup, &alloc);
	changed_mark(sup, CHANGED_WORK);
}

static void
set_state(struct run *r, enum run_state state)
{
	r->state = state;
	turn_write(r->sup, &r->row);
}

static void send_wishes(struct sup *sup, struct deferred *d);
static void on_ready(struct run_watch *w);

static struct run *
run_new(struct sup *sup, const struct id *id, const struct id *alloc, const char *task)
{
	struct run *r = calloc(1, sizeof *r);
	struct run **b = &buckets[hash(id)], **of_alloc = &alloc_buckets[hash(alloc)];

	if (!r)
		return NULL;
	*r = (struct run){ .sup = sup, .id = *id, .alloc = *alloc, .fd = -1, .task = strdup(task) };
	if (!r->task) {
		free(r);
		return NULL;
	}
	r->row.write = write_row;
	r->row.point = CRASH_ROW_RUN;
	r->row.written = on_written;
	r->send.run = send_wishes;
	r->watch = (struct run_watch){ .fd = -1, .ready = on_ready };
	r->next = *b;
	*b = r;
	r->next_of_alloc = *of_alloc;
	*of_alloc = r;
	n_runs++;
	return r;
}

/* The last supervisor's runs: when the last is found, operators may know. */
static void
note_followed(struct run *r)
{
	if (!r->following)
		return;
	r->following = false;
	n_followed++;
	if (--n_following == 0)
		log_info("all %u runs of before are followed again", n_followed);
}

/* --- the end --- */

static void
say_ended(struct run *r, const struct run_end *end)
{
	note_followed(r);
	disconnect(r);
	set_state(r, RUN_ENDED);
	if (r->ev)
		r->ev->ended(r->arg, end);
}

static void
say_failed(struct run *r, const char *sentence, enum run_fault fault)
{
	note_followed(r);
	disconnect(r);
	set_state(r, RUN_ENDED);
	if (r->ev)
		r->ev->failed(r->arg, sentence, fault);
}

static void
say_lost(struct run *r, const char *reason)
{
	const struct run_end end = { .flags = EXE_END_UNKNOWN,
		.rebooted = r->other_boot,
		.reason = r->other_boot ? "the machine was started anew" : reason };

	say_ended(r, &end);
}

static int
read_record(struct run *r, struct exe_record *ret)
{
	char name[ID_HEX_SIZE + 4];
	uint8_t buf[EXE_RECORD_SIZE];
	cleanup_close int fd = -1;
	ssize_t n;

	id_to_hex(&r->id, name);
	(void)strcpy(name + ID_HEX_SIZE - 1, ".rec");
	fd = fd_open_beneath(r->sup->run_dir_fd, name, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = fd_read_full(fd, buf, sizeof buf);
	return n < 0 ? (int)n : exe_record_parse(buf, (size_t)n, r->id.b, ret);
}

/* ECHILD: somebody killed the task's process before it was the task. The others: the machine is
 * short of something. */
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
say_step_failed(struct run *r, uint32_t step, int error, uint32_t detail)
{
	char sentence[512];

	run_text_failure(sentence, sizeof sentence, step, error, detail);
	say_failed(r, sentence, fault_of(error));
}

/* The executor is gone: its record tells the rest, or nobody does. */
static void
read_end(struct run *r)
{
	struct exe_record rec;
	struct run_end end;
	int err = read_record(r, &rec);

	if (r->state == RUN_STARTING && (err < 0 || rec.state == EXE_SETTING_UP)) {
		say_failed(r,
		    err < 0 ? "it was never started: its executor is not there"
			    : "its executor was lost before the task was started",
		    RUN_FAULT_AGENT);
		return;
	}
	if (err < 0) {
		say_lost(r, "its executor was lost and left no record");
		return;
	}
	if (rec.state == EXE_FAILED) {
		say_step_failed(r, rec.step, rec.error, rec.detail);
		return;
	}
	if (rec.state != EXE_ENDED) {
		say_lost(r, "its executor was lost");
		return;
	}
	end = (struct run_end){ .known = !(rec.flags & EXE_END_UNKNOWN),
		.flags = rec.flags,
		.exit_code = rec.exit_code,
		.exit_signal = rec.exit_signal,
		.ended_real_ns = rec.ended_real_ns,
		.lease_limit_ms = rec.lease_limit_ms,
		.lease_last_ok_ns = rec.lease_last_ok_ns,
		.lease_late_ns = rec.lease_late_ns };
	say_ended(r, &end);
}

/* --- the talk --- */

/* Its limit, or how it kills, is not the job's any more. Executors of version 1 cannot be told how
 * to kill. */
static bool
stops_otherwise(const struct run *r)
{
	const struct run_own_stop *job = &r->own_stop, *exe = &r->exe_own_stop;

	return job->limit_ms != exe->limit_ms ||
	       (exe->kill_signal != 0 && (job->kill_signal != exe->kill_signal ||
					     job->kill_timeout_ms != exe->kill_timeout_ms));
}

/*
 * An executor that reads another page than today's would stop its task although beats arrive
 *; one that would stop it otherwise than the job wants it gets to know.
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
	if (!page && !stops_otherwise(r))
		return;
	if (fd_send_msg(r->fd, &m, sizeof m, &fd, page, MSG_DONTWAIT) < 0) {
		log_warn("a run of task %s: its lease could not be renewed", r->task);
		return;
	}
	r->exe_own_stop = r->own_stop;
	r->exe_lease_dev = st.st_dev;
	r->exe_lease_ino = st.st_ino;
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
		if (r->state == RUN_STARTING)
			set_state(r, RUN_STARTED);
		if (r->ev)
			r->ev->started(r->arg, h);
		break;
	case EXE_FAILED:
		say_step_failed(r, h->step, h->error, h->detail);
		return;
	default: /* EXE_ENDED: EXITED or the end of the connection follows */
		break;
	}
	if (r->want_stop || r->signals)
		turn_defer(r->sup, &r->send);
}

/* EXITED is the record's contents, sent: reading the file again would tell the same. */
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

	say_ended(r, &end);
}

static void
on_ready(struct run_watch *w)
{
	union {
		struct exe_head head;
		struct exe_hello hello;
		struct exe_exited exited;
		uint8_t bytes[EXE_MSG_MAX];
	} m;
	struct run *r = container_of(w, struct run, watch);
	cleanup_close int pidfd = -1;
	size_t n = 0;
	ssize_t len;

	memset(&m, 0, sizeof m);
	len = fd_recv_msg(r->fd, &m, sizeof m, &pidfd, 1, &n, MSG_DONTWAIT);
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
	/* Anything else is from an executor of a later version: the record will say what matters.
	 */
}

static void connect_run(struct run *r);

static int
on_retry(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;

	r->later = sd_event_source_disable_unref(r->later);
	connect_run(r);
	return 0;
}

static void
retry_soon(struct run *r)
{
	if (r->retries++ >= RETRIES_MAX || sd_event_add_time_relative(r->sup->event, &r->later,
					       CLOCK_MONOTONIC, RETRY_USEC, 0, on_retry, r) < 0)
		say_lost(r, "its executor does not accept a connection");
}

/* connect() works exactly while the run has an executor or is being given one. */
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

static void
send_wishes(struct sup *sup, struct deferred *d)
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

/* --- the beginning --- */

static void
on_start_reply(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	struct run *r = arg;

	r->call = 0;
	if (code >= 0)
		connect_run(r);
	else if (code == -ECONNRESET || code == -ETIMEDOUT)
		say_failed(r, e->msg, RUN_FAULT_AGENT);
	else
		say_failed(r, e->msg, fault_of(-code));
}

struct run *
run_start(struct sup *sup, const struct id *alloc, const char *task,
    struct exec_task_start_req *req, int spec_fd, const struct run_events *ev, void *arg)
{
	struct id id = id_random();
	struct run *r = run_new(sup, &id, alloc, task);

	if (!r) {
		close_p(&spec_fd);
		return NULL;
	}
	r->ev = ev;
	r->arg = arg;
	set_state(r, RUN_STARTING);
	req->start.run = r->id;
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
		log_error("state.db: a run without an id is left alone");
		return 0;
	}
	r = run_new(sup, &id, &alloc, store_col_text(row, 2));
	if (!r)
		return err_set(e, -ENOMEM, "read state.db");
	r->state = (enum run_state)store_col_int(row, 3);
	r->other_boot = strcmp(store_col_text(row, 4), sup->boot_id) != 0;
	return 0;
}

int
runs_load(struct sup *sup, run_gone_cb *gone, struct err *e)
{
	on_gone = gone;
	return store_each(sup->store, STMT_RUN_ALL, NULL, 0, load_row, sup, e);
}

struct run *
run_find(struct sup *sup, const struct id *alloc, const char *task)
{
	for (struct run *r = alloc_buckets[hash(alloc)]; r; r = r->next_of_alloc)
		if (!r->ev && r->state < RUN_ENDED && id_equal(&r->alloc, alloc) &&
		    strcmp(r->task, task) == 0)
			return r;
	return NULL;
}

bool
run_is_left(struct sup *sup, const struct id *alloc, const char *task)
{
	for (struct run *r = alloc_buckets[hash(alloc)]; r; r = r->next_of_alloc)
		if (id_equal(&r->alloc, alloc) && strcmp(r->task, task) == 0)
			return true;
	return false;
}

static int
on_follow(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;

	r->later = sd_event_source_disable_unref(r->later);
	/* After another boot nothing of it can be alive; only its record can know how it ended
	 * before. */
	if (r->other_boot)
		read_end(r);
	else
		connect_run(r);
	return 0;
}

void
run_follow(struct run *r, const struct run_events *ev, void *arg)
{
	r->ev = ev;
	r->arg = arg;
	r->following = true;
	n_following++;
	if (sd_event_add_time_relative(
		r->sup->event, &r->later, CLOCK_MONOTONIC, 0, 0, on_follow, r) < 0)
		log_error("run: no memory to follow it");
}

void
runs_reap_others(struct sup *sup)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		for (struct run *r = buckets[i]; r; r = r->next)
			if (!r->ev && !r->call && r->state != RUN_GONE)
				run_release(r);
}

/* The executor should have killed it by now; reaping kills by the cgroup, whatever became of the
 * executor. */
static int
on_overdue(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;

	r->overdue = sd_event_source_disable_unref(r->overdue);
	if (r->state < RUN_ENDED)
		say_lost(r, "its executor did not end it in time; its cgroup is killed");
	return 0;
}

void
run_stop(struct run *r, int signo, uint64_t timeout_ms)
{
	r->overdue = sd_event_source_disable_unref(r->overdue);
	(void)sd_event_add_time_relative(r->sup->event, &r->overdue, CLOCK_BOOTTIME,
	    timeout_ms * 1000 + STOP_GRACE_USEC, 0, on_overdue, r);
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

static void reap(struct run *r);

static int
on_reap_again(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct run *r = userdata;

	r->later = sd_event_source_disable_unref(r->later);
	reap(r);
	return 0;
}

static void
on_reaped(struct sup *sup, void *arg, int code, const void *rep, int fd, const struct err *e)
{
	const struct exec_run_reap_rep *reaped = rep;
	struct run *r = arg;

	r->call = 0;
	/* The row stays: the task does not start again before, and the next supervisor tries too.
	 */
	if (code < 0) {
		unsigned n = r->retries < REAP_DOUBLINGS ? r->retries++ : REAP_DOUBLINGS;

		log_print(n == REAP_TELL || code != -EAGAIN ? LOG_LEVEL_WARN : LOG_LEVEL_DEBUG,
		    "task %s: %s; it is tried again", r->task, e->msg);
		(void)sd_event_add_time_relative(
		    sup->event, &r->later, CLOCK_MONOTONIC, REAP_USEC << n, 0, on_reap_again, r);
		return;
	}
	if (reaped->killed)
		log_info("a run of task %s still had processes; they were killed", r->task);
	set_state(r, RUN_GONE);
}

static void
reap(struct run *r)
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
	reap(r);
}

static struct run *
find(const struct id *id)
{
	struct run *r = buckets[hash(id)];

	while (r && !id_equal(&r->id, id))
		r = r->next;
	return r;
}

void
run_reap_unknown(struct sup *sup, const struct id *id)
{
	struct run *r = find(id) ? NULL : run_new(sup, id, &(struct id){ 0 }, "of before");

	if (!r)
		return;
	r->leftover = true;
	n_runs--;
	r->state = RUN_ENDED;
	reap(r);
}

bool
run_is_of_other_boot(const struct run *r)
{
	return r->other_boot;
}

const struct id *
run_id(const struct run *r)
{
	return &r->id;
}

bool
run_is_known(struct sup *sup, const struct id *id)
{
	const struct run *r = find(id);

	return r && !r->leftover;
}

unsigned
runs_count(struct sup *sup)
{
	return n_runs;
}

void
runs_free(struct sup *sup)
{
	for (unsigned i = 0; i < BUCKETS; i++)
		while (buckets[i])
			run_free(buckets[i]);
	run_watch_free();
}
