// SPDX-License-Identifier: Apache-2.0
/* metric_tasks.c: counts the allocs for a scrape, and keeps the values of their tasks. Runs in:
 * supervisor. */
#include "supervisor/metrics/metric_tasks.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/queue.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/number.h"
#include "supervisor/alloc/alloc_hooks.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/hook_network.h"
#include "supervisor/driver/run.h"
#include "supervisor/driver/run_usage.h"
#include "supervisor/metrics/metric_rows.h"
#include "supervisor/metrics/metric_text.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/table/alloc_table.h"

#define SLICE_NS     NS_PER_MS        /* of one turn of the work loop */
#define ENDED_NS     (600 * NS_PER_S) /* a task that ended earlier is left out */
#define BLOCK_BYTES  (256 * 1024)
#define REST_MAX     128 /* tasks that work, of which one scrape reads the memory */
#define LABELS_KNOWN 64
#define CLOCK_ALLOCS 16 /* the clock is read once for so many */

/* In a block: the labels of a job's task, without the alloc's id. */
struct kept_labels {
	size_t len, id_at;
	char text[];
};

/* In a block. */
struct kept_task {
	const struct kept_labels *labels;
	uint32_t n_values; /* a value of each column that its kind has */
	char alloc_id[METRIC_ALLOC_ID];
	double values[];
};

/* Labels that were made in this turn, by the address of the task. */
struct known_labels {
	const struct task *task;
	const struct kept_labels *labels;
};

struct kept_list {
	struct kept_task **v;
	size_t n, size;
};

/* Mapped, so that the heap neither grows nor has holes after a scrape. */
struct block {
	SLIST_ENTRY(block) link;
	size_t used;
	_Alignas(struct kept_task) char bytes[];
};

#define BLOCK_SPACE (BLOCK_BYTES - offsetof(struct block, bytes))

/*
 * The memory of a task that works costs ten times as much as its CPU time: many files, and a sum of
 * the kernel over all processors. If more than REST_MAX tasks work, each scrape reads that of some,
 * in turn. Known for all scrapes, because it is the age of the tasks' samples that counts.
 */
static struct pace {
	unsigned scrapes;
	unsigned n_working; /* tasks that worked between the last two samples */
} pace;

struct metric_tasks {
	struct alloc_cursor at;
	int64_t now_ns;
	const struct metric_family **columns; /* the wanted families: of TASK, then of USAGE */
	bool *column_is_used;                 /* a task has a value */
	size_t n_columns, n_of_task;
	struct known_labels known[LABELS_KNOWN];
	SLIST_HEAD(, block) blocks;
	struct kept_list all, sampled; /* sampled: those with values of USAGE, too */
	struct text labels;            /* that are being made */
	unsigned scrape, turns;        /* a task has its turn in one of so many scrapes */
	unsigned n_working;
	/* The column of metric_tasks_count(). */
	const struct metric_family *family;
	size_t column;
};

/* --- counting --- */

static void
count_status(struct metric_counts *c, const struct sup_alloc *sa)
{
	const char *waits_for;

	switch (sa->a.client_status) {
	case CLIENT_PENDING:
		waits_for = alloc_hooks_waits_for(sa->runner);
		if (waits_for && strcmp(waits_for, alloc_hook_previous.name) == 0)
			c->blocked++;
		else
			c->pending++;
		break;
	case CLIENT_RUNNING:
		c->running++;
		break;
	case CLIENT_COMPLETE:
	case CLIENT_FAILED:
		c->terminal++;
		break;
	default:
		break;
	}
}

static void
count_resources(struct metric_counts *c, const struct sup_alloc *sa)
{
	for (size_t i = 0; i < sa->group->tasks.n; i++) {
		const struct task *task = &sa->group->tasks.v[i];
		const struct alloc_memory m = alloc_task_memory(&sa->a, task);

		c->cpu += metric_cpu_of(sa, task);
		c->memory_mb = number_add(c->memory_mb, m.memory_mb);
		c->memory_max_mb = number_add(
		    c->memory_max_mb, m.memory_max_mb > 0 ? m.memory_max_mb : m.memory_mb);
	}
	c->disk_mb = number_add(c->disk_mb, group_disk_mb(sa->group));
}

static void
count_lease(struct metric_counts *c, uint64_t limit_ms)
{
	if (limit_ms > 0 && (c->lease_min_ms == 0 || limit_ms < c->lease_min_ms))
		c->lease_min_ms = limit_ms;
}

static void
count_alloc(struct metric_counts *c, const struct sup_alloc *sa)
{
	count_status(c, sa);
	if (!alloc_client_terminal(&sa->a)) {
		count_resources(c, sa);
		count_lease(c, group_stop_after_ms(sa->group));
		c->networks += alloc_count_networks(sa);
	}
	for (size_t i = 0; i < sa->a.task_states.n; i++)
		c->tasks[sa->a.task_states.v[i].value.state]++;
}

/* --- tasks --- */

/* Ids are random. */
static bool
has_turn(const struct metric_tasks *t, const struct id *run)
{
	uint32_t number;

	memcpy(&number, run, sizeof number);
	return (number + t->scrape) % t->turns == 0;
}

/* Samples the task. Returns false if there is nothing to sample. */
static bool
sample_task(struct scrape *s, struct task_runner *tr)
{
	if (!tr->run)
		return false;
	if (!tr->usage)
		tr->usage = mem_new(struct run_usage);
	(void)run_usage_sample(s->sup, tr->usage, run_id(tr->run),
	    has_turn(s->tasks, run_id(tr->run)) ? RUN_WHAT_CHANGED : RUN_CPU_TIME);
	s->tasks->n_working += tr->usage->last.cpu.total_ns != tr->usage->before.cpu.total_ns;
	return id_equal(&tr->usage->run, run_id(tr->run));
}

/* As Nomad's agents forget counters that nobody increments: else each ended task would be read for
 * as long as its alloc is on the node. */
static bool
ended_long_ago(const struct task_runner *tr, const struct task_state *state, int64_t now_ns)
{
	return !tr->run && state && state->state == TASK_STATE_DEAD && state->finished_at > 0 &&
	       now_ns - state->finished_at > ENDED_NS;
}

/* Returns NULL if that is more than a block has, or memory is exhausted. */
static char *
add_bytes(struct metric_tasks *t, size_t bytes)
{
	struct block *b = SLIST_FIRST(&t->blocks);
	char *at;

	bytes = (bytes + 7) & ~(size_t)7;
	if (bytes > BLOCK_SPACE)
		return NULL;
	if (!b || b->used + bytes > BLOCK_SPACE) {
		b = mmap(
		    NULL, BLOCK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		if (b == MAP_FAILED)
			return NULL;
		b->used = 0;
		SLIST_INSERT_HEAD(&t->blocks, b, link);
	}
	at = b->bytes + b->used;
	b->used += bytes;
	return at;
}

static void
add_to_list(struct kept_list *list, struct kept_task *kept)
{
	if (list->n == list->size) {
		list->size = list->size ? 2 * list->size : 64;
		list->v = mem_resize(list->v, list->size, sizeof(struct kept_task *));
	}
	list->v[list->n++] = kept;
}

/* Returns the labels of the task; NULL: they cannot be kept. */
static const struct kept_labels *
find_labels(struct scrape *s, const struct task_runner *tr)
{
	struct metric_tasks *t = s->tasks;
	struct known_labels *known = &t->known[(uintptr_t)tr->task / 64 % LABELS_KNOWN];
	struct metric_labels labels;
	struct kept_labels *made;
	size_t id_at;

	if (known->task == tr->task)
		return known->labels;
	metric_label_task(s, tr, &labels);
	t->labels.len = 0;
	id_at = metric_text_labels(s, &labels, &t->labels);
	made = (struct kept_labels *)add_bytes(t, sizeof *made + t->labels.len);
	if (!made)
		return NULL;
	made->len = t->labels.len;
	made->id_at = id_at;
	memcpy(made->text, t->labels.text, t->labels.len);
	*known = (struct known_labels){ tr->task, made };
	return made;
}

/* Returns the task with space for its values; NULL: it cannot be kept. */
static struct kept_task *
add_task(struct scrape *s, const struct task_runner *tr, size_t n_values)
{
	struct metric_tasks *t = s->tasks;
	const struct kept_labels *labels = find_labels(s, tr);
	struct kept_task *kept =
	    labels ? (struct kept_task *)add_bytes(t, sizeof *kept + n_values * sizeof(double))
		   : NULL;

	if (!kept)
		return NULL;
	kept->labels = labels;
	kept->n_values = (uint32_t)n_values;
	memcpy(kept->alloc_id, tr->ar->sa->a.id, sizeof kept->alloc_id);
	add_to_list(&t->all, kept);
	if (n_values > t->n_of_task)
		add_to_list(&t->sampled, kept);
	return kept;
}

static void
keep_task(struct scrape *s, struct task_runner *tr)
{
	struct metric_tasks *t = s->tasks;
	struct metric_task row = { .tr = tr,
		.state = map_get(task_state, &tr->ar->sa->a.task_states, tr->task->name) };
	struct kept_task *kept;

	if (ended_long_ago(tr, row.state, t->now_ns))
		return;
	if (t->n_columns > t->n_of_task && sample_task(s, tr)) {
		row.sample = &tr->usage->last;
		row.before = &tr->usage->before;
	}
	kept = add_task(s, tr, row.sample ? t->n_columns : t->n_of_task);
	for (size_t i = 0; kept && i < kept->n_values; i++) {
		kept->values[i] = t->columns[i]->value(s, &row);
		t->column_is_used[i] |= !isnan(kept->values[i]);
	}
}

/* Most of the time for thousands of ended allocs is waiting for memory that is not in the
 * processor's cache: each alloc has several pieces, which are found one through another. So while
 * one alloc is visited, the processor already loads all pieces of the next one, and the first piece
 * of the one after that. gcc removes the call of a function that only prefetches, unless it is
 * inlined. */
static inline __attribute__((always_inline)) void
prefetch_allocs(const struct alloc_cursor *at)
{
	const struct sup_alloc *next = at->next, *then = next ? alloc_next(at->next) : NULL;

	if (!then || !next->runner)
		return;
	__builtin_prefetch(next->a.id);
	__builtin_prefetch(next->a.task_states.v);
	__builtin_prefetch((const char *)next->runner + offsetof(struct alloc_runner, n_tasks));
	__builtin_prefetch(
	    (const char *)next->runner + offsetof(struct alloc_runner, tasks[0].run));
	__builtin_prefetch(&then->a.id);
	__builtin_prefetch(&then->a.client_status);
	__builtin_prefetch(&then->runner);
}

static void
visit_alloc(struct scrape *s, struct sup_alloc *sa)
{
	if (!sa->runner)
		return;
	count_alloc(&s->counts, sa);
	for (unsigned i = 0; s->tasks->n_columns > 0 && i < sa->runner->n_tasks; i++)
		keep_task(s, &sa->runner->tasks[i]);
}

/* --- exported --- */

static void
add_columns(struct scrape *s, enum metric_rows rows)
{
	struct metric_tasks *t = s->tasks;

	for (const struct metric_family *f = metric_families; f->name; f++) {
		if (f->rows != rows || !metric_is_wanted(s, f))
			continue;
		t->columns = mem_resize(t->columns, t->n_columns + 1, sizeof *t->columns);
		t->columns[t->n_columns++] = f;
	}
}

void
metric_tasks_begin(struct scrape *s)
{
	struct metric_tasks *t = s->tasks = mem_new(struct metric_tasks);

	t->scrape = pace.scrapes++;
	t->turns = 1 + pace.n_working / REST_MAX;
	add_columns(s, ROWS_TASK);
	t->n_of_task = t->n_columns;
	add_columns(s, ROWS_USAGE);
	t->column_is_used = mem_zeroed(t->n_columns + 1, sizeof *t->column_is_used);
	t->now_ns = clock_real_ns();
	alloc_cursor_begin(s->sup, &t->at);
}

bool
metric_tasks_go_on(struct scrape *s)
{
	const uint64_t end_ns = clock_boot_ns() + SLICE_NS;
	struct metric_tasks *t = s->tasks;
	struct sup_alloc *sa;

	host_usage_read_on(s->sup);
	if (t->n_columns > t->n_of_task)
		run_usage_expect_many(s->sup);
	/* Another task may have the address of one that was freed since. */
	memset(t->known, 0, sizeof t->known);
	for (unsigned n = 1; (sa = alloc_cursor_next(&t->at)); n++) {
		prefetch_allocs(&t->at);
		visit_alloc(s, sa);
		if (n % CLOCK_ALLOCS == 0 && clock_boot_ns() > end_ns)
			return true;
	}
	pace.n_working = t->n_working;
	return false;
}

void
metric_tasks_free(struct scrape *s)
{
	struct metric_tasks *t = s->tasks;
	struct block *b;

	while ((b = SLIST_FIRST(&t->blocks))) {
		SLIST_REMOVE_HEAD(&t->blocks, link);
		(void)munmap(b, BLOCK_BYTES);
	}
	alloc_cursor_end(&t->at);
	free(t->columns);
	free(t->column_is_used);
	free(t->all.v);
	free(t->sampled.v);
	text_done(&t->labels);
	free_p(&s->tasks);
}

size_t
metric_tasks_count(const struct scrape *s, const struct metric_family *f)
{
	struct metric_tasks *t = s->tasks;

	if (t->family != f) {
		t->family = f;
		for (t->column = 0; t->columns[t->column] != f;)
			t->column++;
	}
	if (!t->column_is_used[t->column])
		return 0;
	return f->rows == ROWS_USAGE ? t->sampled.n : t->all.n;
}

double
metric_tasks_value(const struct scrape *s, const struct metric_family *f, size_t i,
    struct metric_label_text *ret_labels)
{
	const struct metric_tasks *t = s->tasks;
	const struct kept_task *kept = f->rows == ROWS_USAGE ? t->sampled.v[i] : t->all.v[i];

	*ret_labels = (struct metric_label_text){ .text = kept->labels->text,
		.len = kept->labels->len,
		.alloc_id = kept->alloc_id,
		.id_at = kept->labels->id_at };
	return kept->values[t->column];
}
