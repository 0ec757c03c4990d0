// SPDX-License-Identifier: Apache-2.0
/*
 * hook_artifacts.c: has the artifacts of a task fetched, three at a time, and put into its
 * directories, before it starts for the first time. Runs in: supervisor.
 *
 * The fetcher puts an artifact into a staging directory and marks it when it is complete, and
 * file-helper copies it from there. Each fetch has a new staging directory, which is recorded
 * before it begins: after a crash of the supervisor or the fetcher, an artifact that is complete is
 * placed, and not fetched again. What is in its place is recorded, and is not fetched again after a
 * restart of the task or of the agent.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/artifact_kept.h"
#include "supervisor/alloc/artifact_spec.h"
#include "supervisor/alloc/task_artifacts.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/core/sup_timer.h"

#define AT_ONCE  3 /* artifacts of one task */
#define LOST_MAX 3 /* steps of one artifact that a helper did not survive */

enum fetch_state { FETCH_WAITING, FETCH_FETCHING, FETCH_FETCHED, FETCH_PLACING, FETCH_DONE };

struct artifact {
	struct task_artifacts *of;
	size_t index; /* in the task, whose job may be updated meanwhile */
	enum fetch_state state;
	unsigned lost;
	bool unsure;       /* of FETCH_FETCHED and FETCH_PLACING: the fetcher did not say that it is
			      complete */
	struct id staging; /* of FETCH_FETCHING to FETCH_PLACING */
	struct queued *request; /* of FETCH_FETCHING and FETCH_PLACING */
	uint64_t call;          /* about progress */
	char hash[ARTIFACT_HASH_SIZE];
};

/* While the task waits for its artifacts. */
struct task_artifacts {
	struct task_runner *tr;
	void (*done)(struct task_runner *tr, int r, const struct err *e);
	struct err error; /* of the first that failed; then no other is begun */
	struct sup_timer timer;
	uint64_t wait_usec; /* until the next event about progress */
	size_t n;
	struct artifact v[];
};

/* The state of a task. */
struct placed {
	struct task_artifacts *now; /* NULL: it does not wait for any */
	struct kept_fetches *kept; /* not begun by this supervisor, and not taken up yet; or NULL */
	struct strings hashes;     /* of artifacts that are in their places */
};

static const struct task_artifact *
artifact_of(const struct artifact *one)
{
	return &one->of->tr->task->artifacts.v[one->index];
}

static struct placed *
placed_of(const struct task_runner *tr)
{
	return task_hook_state(tr, &alloc_hook_artifacts);
}

/* --- staging directories --- */

static void
on_dropped(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	if (r < 0)
		journal_warn(JOURNAL_LEFTOVER, NULL, "remove what was fetched: %s", e->msg);
}

static void
drop_staging(struct sup *sup, const struct id *staging)
{
	const struct file_artifact_drop_req req = { .staging = *staging };

	(void)file_call_artifact_drop(sup, &req, on_dropped, NULL);
}

static void
drop_kept(struct task_runner *tr)
{
	struct kept_fetches *kept = steal_ptr(&placed_of(tr)->kept);

	for (size_t i = 0; kept && i < kept->n; i++)
		drop_staging(tr->ar->sup, &kept->v[i].staging);
	free(kept);
}

static void
keep_staging(const struct task_runner *tr, struct file_artifact_drop_req *req)
{
	const struct placed *p = placed_of(tr);

	for (size_t i = 0; p->kept && i < p->kept->n && req->n_keep < FILE_KEEP_MAX; i++)
		req->keep[req->n_keep++].id = p->kept->v[i].staging;
}

/* Whatever else is there belongs to the last supervisor. What is removed beyond FILE_KEEP_MAX is
 * fetched again. */
static void
drop_others(struct sup *sup)
{
	struct file_artifact_drop_req req = { 0 };

	alloc_foreach(sup, sa)
	{
		for (unsigned k = 0; sa->runner && k < sa->runner->n_tasks; k++)
			keep_staging(&sa->runner->tasks[k], &req);
	}
	(void)file_call_artifact_drop(sup, &req, on_dropped, NULL);
}

/* --- the end --- */

static void
on_cancelled(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	cleanup_free struct id *staging = arg;

	drop_staging(sup, staging);
}

/* A fetch that was sent is ended. Its directory is removed after the answer: the fetcher may make
 * it only now, if it has just been started. */
static void
cancel_fetch(struct artifact *one)
{
	const struct fet_artifact_cancel_ev ev = { .staging = one->staging };
	struct id *staging = mem_new(struct id);

	*staging = one->staging;
	queue_hand_over(one->request, on_cancelled, staging);
	child_tell(one->of->tr->ar->sup, IPC_FETCHER, FET_ARTIFACT_CANCEL_EV, &ev);
}

static void
end_artifact(struct artifact *one)
{
	struct sup *sup = one->of->tr->ar->sup;

	child_call_cancel(sup, one->call);
	if (one->state == FETCH_FETCHING && queue_has_begun(one->request)) {
		cancel_fetch(one);
		return;
	}
	queue_forget(one->request);
	if (one->state > FETCH_FETCHING && one->state < FETCH_DONE)
		drop_staging(sup, &one->staging);
}

static void
free_fetches(struct task_runner *tr)
{
	struct task_artifacts *all = steal_ptr(&placed_of(tr)->now);

	if (!all)
		return;
	for (size_t i = 0; i < all->n; i++)
		end_artifact(&all->v[i]);
	sup_timer_cancel(&all->timer);
	free(all);
}

static void
end_all(struct task_artifacts *all)
{
	void (*done)(struct task_runner *, int, const struct err *) = all->done;
	struct task_runner *tr = all->tr;
	struct err e = all->error;

	free_fetches(tr);
	done(tr, e.code, &e);
}

static void
fail(struct artifact *one, int r, const struct err *e)
{
	struct task_artifacts *all = one->of;
	cleanup_free char *shown = artifact_shown(artifact_of(one));
	char text[ERR_MSG_SIZE];

	one->state = FETCH_DONE;
	(void)utf8_sanitize(text, sizeof text, e->msg, strlen(e->msg)); /* it may quote names */
	if (all->error.code == 0)
		(void)err_say(
		    &all->error, r, "failed to download artifact \"%.200s\": %.250s", shown, text);
}

/* --- fetching and placing --- */

static void go_on(struct task_artifacts *all);

static void
on_placed(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct artifact *one = arg;
	struct task_runner *tr = one->of->tr;

	one->request = NULL;
	if (r == -ENODATA && one->unsure) {
		drop_staging(sup, &one->staging);
		one->state = FETCH_WAITING;
		go_on(one->of);
		return;
	}
	if (r == -EIO && ++one->lost < LOST_MAX) { /* its worker died; what was fetched is there */
		one->state = FETCH_FETCHED;
		go_on(one->of);
		return;
	}
	if (r < 0) {
		fail(one, r == -EINVAL ? -EBADMSG : r, e);
	} else {
		one->state = FETCH_DONE;
		strings_add(&placed_of(tr)->hashes, one->hash);
		alloc_save_soon(tr->ar);
	}
	drop_staging(sup, &one->staging);
	go_on(one->of);
}

static int
begin_place(struct artifact *one, struct err *e)
{
	const struct task_runner *tr = one->of->tr;
	const struct config_artifact *config = &tr->ar->sup->config->artifact;
	uint64_t bytes =
	    config->http_bytes > config->unpack_bytes ? config->http_bytes : config->unpack_bytes;
	struct file_artifact_place_req req = {
		.alloc = tr->ar->sa->id,
		.staging = one->staging,
		.max_bytes = artifact_bytes_max(tr, bytes),
		.max_files = ARTIFACT_FILES_MAX,
	};
	char dest[TASK_PATH_SIZE];
	int r = artifact_dest_make(tr, artifact_of(one), dest, e);

	if (r < 0)
		return r;
	(void)IPC_TEXT_SET(req.task, tr->task->name);
	(void)IPC_TEXT_SET(req.dest, dest);
	req.chown = artifact_becomes_own(tr, artifact_of(one), dest);
	one->state = FETCH_PLACING;
	one->request = queue_ask(tr->ar->sup, QUEUE_PLACE, &req, -1, on_placed, one);
	return 0;
}

/* If the fetcher or its process for this artifact died, what it has fetched may be complete: that
 * is found out when it is placed. Other errors may have any reason in the source: the task may
 * succeed with its next try. */
static void
on_fetched(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct artifact *one = arg;
	struct err why = { 0 };

	one->request = NULL;
	child_call_cancel(sup, one->call); /* a question about its progress */
	one->call = 0;
	one->unsure = (r == -ECONNRESET || r == -EIO) && ++one->lost < LOST_MAX;
	if (r >= 0 || one->unsure) {
		one->state = FETCH_FETCHED;
	} else {
		drop_staging(sup, &one->staging);
		(void)err_say(
		    &why, r, "%s", r == -EIO ? "the fetcher's process for it died" : e->msg);
		fail(one, -EBADMSG, &why);
	}
	go_on(one->of);
}

static int
begin_fetch(struct artifact *one, struct err *e)
{
	struct fet_artifact_get_req req = { .timeout_ms = artifact_timeout_ms(one->of->tr) };
	char dest[TASK_PATH_SIZE];
	int r = artifact_dest_make(one->of->tr, artifact_of(one), dest, e), spec_fd;

	if (r < 0)
		return r;
	spec_fd = artifact_spec_make(one->of->tr, artifact_of(one), e);
	if (spec_fd < 0)
		return spec_fd;
	one->staging = req.staging = id_random();
	one->state = FETCH_FETCHING;
	/* A job whose servers are slow does not delay the artifacts of all others. */
	one->request = queue_ask_for(one->of->tr->ar->sup, QUEUE_FETCH,
	    alloc_job_hash(one->of->tr->ar), &req, spec_fd, on_fetched, one);
	alloc_save_soon(one->of->tr->ar);
	return 0;
}

static size_t
count(const struct task_artifacts *all, enum fetch_state first, enum fetch_state last)
{
	size_t n = 0;

	for (size_t i = 0; i < all->n; i++)
		n += all->v[i].state >= first && all->v[i].state <= last;
	return n;
}

static void
begin(struct artifact *one, int (*step)(struct artifact *one, struct err *e))
{
	struct err e = { 0 };
	int r = step(one, &e);

	if (r < 0 && one->state == FETCH_FETCHED)
		drop_staging(one->of->tr->ar->sup, &one->staging);
	if (r < 0)
		fail(one, r, &e);
}

/* Artifacts begin in the order of the job. Those of a task are placed one after the other. */
static void
go_on(struct task_artifacts *all)
{
	for (size_t i = 0; i < all->n; i++) {
		struct artifact *one = &all->v[i];

		if (one->state == FETCH_FETCHED && count(all, FETCH_PLACING, FETCH_PLACING) == 0)
			begin(one, begin_place);
		if (one->state == FETCH_WAITING && all->error.code == 0 &&
		    count(all, FETCH_FETCHING, FETCH_PLACING) < AT_ONCE)
			begin(one, begin_fetch);
	}
	if (count(all, FETCH_FETCHING, FETCH_PLACING) == 0 &&
	    (all->error.code < 0 || count(all, FETCH_DONE, FETCH_DONE) == all->n))
		end_all(all);
}

/* --- progress --- */

static void
tell_progress(struct artifact *one, const struct fet_artifact_progress_rep *p)
{
	cleanup_free char *shown = artifact_shown(artifact_of(one));

	task_runner_tell_progress(
	    one->of->tr, EVENT_DOWNLOADING_ARTIFACTS, shown, p->bytes, p->total);
}

static void
on_progress(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct artifact *one = arg;

	one->call = 0;
	if (r >= 0 && one->state == FETCH_FETCHING)
		tell_progress(one, rep);
}

static void
ask_progress(void *arg)
{
	struct task_artifacts *all = arg;
	struct sup *sup = all->tr->ar->sup;

	for (size_t i = 0; i < all->n; i++) {
		struct artifact *one = &all->v[i];
		const struct fet_artifact_progress_req req = { .staging = one->staging };

		if (one->state == FETCH_FETCHING && !one->call && queue_has_begun(one->request))
			one->call = fet_call_artifact_progress(sup, &req, on_progress, one);
	}
	all->wait_usec *= 2;
	sup_timer_set(sup, &all->timer, CLOCK_MONOTONIC, all->wait_usec, ask_progress, all);
}

/* --- the hook --- */

static void
add_artifact(struct task_artifacts *all, size_t index)
{
	struct placed *p = placed_of(all->tr);
	struct artifact *one = &all->v[all->n];

	*one = (struct artifact){ .of = all, .index = index };
	artifact_hash(artifact_of(one), one->hash);
	if (strings_has(&p->hashes, one->hash))
		return;
	one->staging = kept_fetches_take(p->kept, one->hash);
	one->unsure = !id_is_zero(&one->staging);
	one->state = one->unsure ? FETCH_FETCHED : FETCH_WAITING;
	all->n++;
}

void
task_artifacts_prepare(
    struct task_runner *tr, void (*done)(struct task_runner *tr, int r, const struct err *e))
{
	struct placed *p = placed_of(tr);
	const size_t max = tr->task->artifacts.n;
	struct task_artifacts *all = mem_zeroed(1, sizeof *all + max * sizeof all->v[0]);

	*all = (struct task_artifacts){ .tr = tr, .done = done, .wait_usec = EVENT_PROGRESS_USEC };
	for (size_t i = 0; i < max; i++)
		add_artifact(all, i);
	free_fetches(tr);
	drop_kept(tr); /* of artifacts that the task no longer has */
	p->now = all;
	if (all->n > 0) {
		task_runner_tell(tr, EVENT_DOWNLOADING_ARTIFACTS, NULL, false);
		sup_timer_set(
		    tr->ar->sup, &all->timer, CLOCK_MONOTONIC, all->wait_usec, ask_progress, all);
	}
	go_on(all);
}

size_t
task_artifacts_left(const struct task_runner *tr)
{
	const struct task_artifacts *now = placed_of(tr)->now;

	return now ? count(now, FETCH_WAITING, FETCH_PLACING) : 0;
}

static void
init_placed(struct alloc_runner *ar, const struct alloc_record *kept)
{
	for (unsigned k = 0; k < ar->n_tasks; k++)
		placed_of(&ar->tasks[k])->kept =
		    kept_fetches_read(kept, ar->tasks[k].task->name, ar->sup->boot_id);
	for (size_t i = 0; i < kept->artifacts.n; i++)
		for (unsigned k = 0; k < ar->n_tasks; k++)
			if (str_eq(ar->tasks[k].task->name, kept->artifacts.v[i].task))
				strings_add(&placed_of(&ar->tasks[k])->hashes,
				    str(kept->artifacts.v[i].hash));
}

static void
save_fetches(const struct task_runner *tr, struct alloc_record *rec)
{
	const struct placed *p = placed_of(tr);
	const char *task = tr->task->name, *boot = tr->ar->sup->boot_id;

	for (size_t i = 0; p->kept && i < p->kept->n; i++)
		kept_fetch_save(rec, task, boot, p->kept->v[i].hash, &p->kept->v[i].staging);
	for (size_t i = 0; p->now && i < p->now->n; i++)
		if (p->now->v[i].state > FETCH_WAITING && p->now->v[i].state < FETCH_DONE)
			kept_fetch_save(rec, task, boot, p->now->v[i].hash, &p->now->v[i].staging);
}

static void
save_placed(const struct alloc_runner *ar, struct alloc_record *rec)
{
	for (unsigned k = 0; k < ar->n_tasks; k++) {
		const struct placed *p = placed_of(&ar->tasks[k]);

		for (size_t i = 0; i < p->hashes.n; i++) {
			struct artifact_record *one = list_add(artifact_record, &rec->artifacts);

			str_set(&one->task, ar->tasks[k].task->name);
			str_set(&one->hash, p->hashes.v[i]);
		}
		save_fetches(&ar->tasks[k], rec);
	}
}

/* After a restart of the agent this is also called for a task that has yet to start. */
static void
end_fetches(struct task_runner *tr)
{
	free_fetches(tr);
	if (tr->phase == TASK_DEAD)
		drop_kept(tr);
}

static void
free_placed(struct alloc_runner *ar)
{
	for (unsigned k = 0; k < ar->n_tasks; k++) {
		free_fetches(&ar->tasks[k]);
		drop_kept(&ar->tasks[k]);
		strings_done(&placed_of(&ar->tasks[k])->hashes);
	}
}

ALLOC_HOOK(artifacts, "artifacts", 0, .restored = drop_others, .init = init_placed,
    .save = save_placed, .shutdown = free_placed, .task.state_size = sizeof(struct placed),
    .task.ends = end_fetches);
