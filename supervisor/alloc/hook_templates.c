// SPDX-License-Identifier: Apache-2.0
/*
 * hook_templates.c: the templates of each task, from its first start to its end: waits for them
 * before a start, adds their files to it, and tells what is missing. Runs in: supervisor.
 *
 * state.db has a digest of each output whose change_mode was applied, so that a restarted agent
 * changes nothing unless a value has changed meanwhile.
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
#include "supervisor/alloc/causes.h"
#include "supervisor/alloc/task_config.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_runner.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/alloc/template_env.h"
#include "supervisor/alloc/template_file.h"
#include "supervisor/alloc/template_values.h"
#include "supervisor/service/task_env.h"

#define BLOCKED_USEC 3000000 /* until the first event about what is missing, and between two */
#define SHOWN_SIZE   256
#define NAMED_MAX    3 /* needs that such an event names */

/* The state of a task. */
struct templates_state {
	struct task_templates *all; /* NULL: not needed yet, or not any more */
	struct strings kept;        /* digests that the last supervisor has applied, in order */
	struct template_env started;
};

static struct templates_state *
state_of(const struct task_runner *tr)
{
	return task_hook_state(tr, &alloc_hook_templates);
}

struct task_templates *
task_templates_of(const struct task_runner *tr)
{
	return state_of(tr)->all;
}

const struct task_template *
template_of(const struct rendered *one)
{
	return &one->of->tr->task->templates.v[one->index];
}

/* --- the state --- */

static void
free_output(struct rendered *one)
{
	if (!one->output)
		return;
	template_drop(one);
	explicit_bzero(one->output, one->len);
	free(one->output);
	one->output = NULL;
}

void
template_release_output(struct rendered *one)
{
	if (!template_of(one)->once)
		free_output(one);
}

static void
free_all(struct task_runner *tr)
{
	struct task_templates *all = steal_ptr(&state_of(tr)->all);

	if (!all)
		return;
	template_change_stop(all);
	for (size_t i = 0; i < all->n; i++) {
		struct rendered *one = &all->v[i];

		task_template_render_stop(one);
		free_output(one);
		template_env_free(one);
		json_decref(one->needs);
		free(one->path);
		free(one->text);
	}
	template_values_free(all->values);
	sup_timer_cancel(&all->blocked);
	sup_timer_cancel(&all->failing);
	free(all->failure);
	free(all->told);
	free(all);
}

static void on_value(struct task_runner *tr, const char *need);

/* Makes the state of a task that has templates. */
static struct task_templates *
need_all(struct task_runner *tr)
{
	struct templates_state *s = state_of(tr);
	struct task_templates *all;
	const size_t n = tr->task->templates.n;

	if (s->all || n == 0)
		return s->all;
	all = s->all = mem_zeroed(1, sizeof *all + n * sizeof all->v[0]);
	*all = (struct task_templates){ .tr = tr, .n = n };
	all->values = template_values_new(tr, on_value, template_find_made);
	for (size_t i = 0; i < n; i++) {
		all->v[i] = (struct rendered){ .of = all, .index = i };
		if (i < s->kept.n) {
			(void)snprintf(
			    all->v[i].applied, sizeof all->v[i].applied, "%s", s->kept.v[i]);
			memcpy(all->v[i].written, all->v[i].applied, sizeof all->v[i].written);
		}
	}
	return all;
}

/* --- values --- */

/* A template that is rendered once needs nothing afterwards. */
static bool
is_settled(const struct rendered *one)
{
	return template_of(one)->once && one->output;
}

/* Ends following what no template needs any more. */
static void
sweep_values(struct task_templates *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!is_settled(&all->v[i]))
			template_values_keep(all->values, all->v[i].needs);
	template_values_sweep(all->values);
}

static void
on_value(struct task_runner *tr, const char *need)
{
	struct task_templates *all = task_templates_of(tr);

	for (size_t i = 0; i < all->n; i++)
		if (!is_settled(&all->v[i]) && template_needs_have(all->v[i].needs, need))
			task_template_render_later(&all->v[i]);
}

/* --- what is missing --- */

static int
compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Returns the names of the needs that the templates wait for, sorted. */
static struct strings
find_missing(const struct task_templates *all)
{
	struct strings names = { 0 };
	size_t kept = 0;

	for (size_t i = 0; i < all->n; i++)
		for (size_t k = 0; k < json_array_size(all->v[i].needs); k++) {
			const json_t *need = json_array_get(all->v[i].needs, k);

			if (json_is_true(json_object_get(need, "missing")))
				strings_add(&names, template_need_name(need));
		}
	if (names.n > 1)
		qsort(names.v, names.n, sizeof names.v[0], compare_texts);
	for (size_t i = 0; i < names.n; i++) {
		if (kept > 0 && strcmp(names.v[kept - 1], names.v[i]) == 0)
			free(names.v[i]);
		else
			names.v[kept++] = names.v[i];
	}
	names.n = kept;
	return names;
}

/* Writes a name for people: its author chose it. */
static const char *
shown(const char *name, char buf[SHOWN_SIZE])
{
	(void)utf8_sanitize(buf, SHOWN_SIZE, name, strlen(name));
	return buf;
}

/* Returns "Missing: a, b, c, and 2 more", or NULL if nothing is missing. */
static char *
missing_sentence(const struct task_templates *all)
{
	struct strings names = find_missing(all);
	char name[SHOWN_SIZE];
	struct text t = { 0 };

	for (size_t i = 0; i < names.n && i < NAMED_MAX; i++)
		text_printf(&t, "%s%s", i == 0 ? "Missing: " : ", ", shown(names.v[i], name));
	if (names.n > NAMED_MAX)
		text_printf(&t, ", and %zu more", names.n - NAMED_MAX);
	strings_done(&names);
	return t.text;
}

/* Appends the event, and another one whenever the set of missing values has changed. */
static void
tell_missing(void *arg)
{
	struct task_templates *all = arg;
	cleanup_free char *now = missing_sentence(all);
	struct task_event ev;

	if (now && !str_eq(now, all->told)) {
		str_set(&all->told, now);
		task_event_make(&ev, EVENT_TEMPLATE, clock_real_ns(), now);
		task_runner_event(all->tr, &ev);
	}
	sup_timer_set(
	    all->tr->ar->sup, &all->blocked, CLOCK_MONOTONIC, BLOCKED_USEC, tell_missing, all);
}

bool
task_templates_why(const struct task_runner *tr, struct causes *c)
{
	const struct task_templates *all = task_templates_of(tr);
	cleanup_free char *missing = all && all->done ? missing_sentence(all) : NULL;
	char name[SHOWN_SIZE];
	struct strings names;

	if (!all || !all->done)
		return false;
	if (!missing) {
		causes_add(c, 0, tr->task->name, "Its templates are being rendered.");
		return true;
	}
	causes_add(
	    c, 0, tr->task->name, "It waits for values that its templates need. %s.", missing);
	names = find_missing(all);
	for (size_t i = 0; i < names.n && i < NAMED_MAX; i++) {
		const char *problem = template_values_problem(all->values, names.v[i]);

		if (problem)
			causes_add(
			    c, 0, tr->task->name, "%s: %s", shown(names.v[i], name), problem);
	}
	strings_done(&names);
	return true;
}

/* --- renderings --- */

/* Returns whether a template that is rendered once was rendered by the last supervisor. */
static bool
is_over(const struct rendered *one)
{
	return template_of(one)->once && one->applied[0];
}

static bool
is_ready(const struct task_templates *all)
{
	for (size_t i = 0; i < all->n; i++)
		if (!all->v[i].output)
			return false;
	return true;
}

static void
end_wait(struct task_templates *all)
{
	void (*done)(struct task_runner * tr) = all->done;

	all->done = NULL;
	sup_timer_cancel(&all->blocked);
	str_set(&all->told, NULL);
	done(all->tr);
}

/* The next start has the output; a running task gets it now, unless it has it. */
static void
follow_change(struct rendered *one, bool first)
{
	if (one->of->tr->phase != TASK_RUNNING)
		return;
	if (first && template_of(one)->env && !state_of(one->of->tr)->started.known &&
	    template_env_known(one->of->tr)) {
		task_config_prepare(one->of->tr, NULL); /* sessions use it */
		task_hooks_know_env(one->of->tr);
	}
	if (strcmp(one->rendered, one->written) == 0)
		template_release_output(one);
	template_change_begin(one->of);
}

void
template_keep(struct rendered *one, const char *why)
{
	char text[ERR_MSG_SIZE + 256];

	(void)snprintf(text, sizeof text, "%.200s is not rendered again: %s",
	    str(template_of(one)->dest_path), why);
	task_runner_tell(one->of->tr, EVENT_TEMPLATE, text, false);
	json_decref(one->needs);
	one->needs = NULL;
	sweep_values(one->of);
}

void
template_was_rendered(struct rendered *one, char **output, size_t len)
{
	struct task_templates *all = one->of;
	struct rendered *largest;
	bool first = !one->rendered[0];
	const char *over;
	struct err e = { 0 };

	free_output(one);
	one->output = steal_ptr(output);
	one->len = len;
	template_hold(one);
	over = template_over_bytes(all);
	if (over) {
		template_failed(one, over);
		return;
	}
	largest = template_over_node();
	if (largest)
		template_failed(largest,
		    "this task holds more bytes of files than any other that waits, and "
		    "all together hold more than 256 MiB");
	(void)SHA256Data((const uint8_t *)one->output, len, one->rendered);
	if (template_of(one)->env && template_env_read(one, &e) < 0) {
		template_failed(one, e.msg);
		return;
	}
	sweep_values(all);
	template_values_made(all->values, one, template_made_value);
	if (all->done && is_ready(all))
		end_wait(all);
	else if (!all->done)
		follow_change(one, first);
}

static void
fail_task(void *arg)
{
	struct task_templates *all = arg;
	struct task_event ev;

	task_event_killing(&ev, clock_real_ns(), all->failure, 0);
	task_event_set_fails(&ev);
	task_runner_kill(all->tr, &ev);
}

void
template_failed(struct rendered *one, const char *sentence)
{
	struct task_templates *all = one->of;

	if (all->failure)
		return;
	all->failure =
	    mem_printf("Template failed: %.200s: %s", str(template_of(one)->dest_path), sentence);
	sup_timer_set(all->tr->ar->sup, &all->failing, CLOCK_MONOTONIC, 0, fail_task, all);
}

/* --- starts --- */

void
task_templates_prepare(struct task_runner *tr, void (*done)(struct task_runner *tr))
{
	struct task_templates *all = need_all(tr);

	if (!all || is_ready(all)) {
		done(tr);
		return;
	}
	all->done = done;
	sup_timer_set(tr->ar->sup, &all->blocked, CLOCK_MONOTONIC, BLOCKED_USEC, tell_missing, all);
	for (size_t i = 0; i < all->n; i++)
		if (!all->v[i].output)
			task_template_render(&all->v[i]);
}

static int
add_files(struct task_runner *tr, struct spec_writer *spec, struct err *e)
{
	struct task_templates *all = task_templates_of(tr);
	struct task_file file;
	char path[TASK_PATH_SIZE];
	int r = 0;

	for (size_t i = 0; all && r >= 0 && i < all->n; i++) {
		if (!all->v[i].output) /* a session's command: the files are there */
			continue;
		r = template_file_make(&all->v[i], path, &file, e);
		if (r >= 0)
			spec_add_file(spec, &file.at, file.data, file.len);
	}
	return r;
}

static void
put_all(const struct string_map *from, struct string_map *vars)
{
	for (size_t i = 0; i < from->n; i++)
		string_map_set(vars, from->v[i].key, str(from->v[i].value));
}

static void
put_rendered(const struct task_templates *all, struct string_map *vars)
{
	for (size_t i = 0; all && i < all->n; i++)
		put_all(&all->v[i].env, vars);
}

/* The variables of this start are those of the task until the next one. */
static void
set_started(struct task_runner *tr)
{
	struct string_map vars = { 0 };
	bool any = false;

	for (size_t i = 0; i < tr->task->templates.n; i++)
		any |= tr->task->templates.v[i].env;
	if (!any)
		return;
	put_rendered(task_templates_of(tr), &vars);
	template_env_set(&state_of(tr)->started, tr, &vars);
}

/* The start wrote all outputs, so change_mode does not apply to them, but for the first ones of
 * run_on_first_render. */
static void
were_added(struct task_runner *tr)
{
	struct task_templates *all = task_templates_of(tr);

	for (size_t i = 0; all && i < all->n; i++) {
		struct rendered *one = &all->v[i];

		memcpy(one->written, one->rendered, sizeof one->written);
		if (!template_runs_first(one))
			memcpy(one->applied, one->rendered, sizeof one->applied);
		template_release_output(one);
	}
	set_started(tr);
	if (all)
		alloc_save_soon(tr->ar);
}

/* The last supervisor started this task, which has its files. Their values are watched again. */
static void
follow(struct task_runner *tr)
{
	struct task_templates *all = need_all(tr);

	for (size_t i = 0; all && i < all->n; i++)
		if (!all->v[i].rendered[0] && !is_over(&all->v[i]))
			task_template_render(&all->v[i]);
	if (all) {
		template_change_first(all);
		template_change_begin(all);
	}
}

static void
stop_change(struct task_runner *tr)
{
	struct task_templates *all = task_templates_of(tr);

	if (tr->phase == TASK_DEAD)
		template_env_forget(&state_of(tr)->started);
	if (!all)
		return;
	template_change_stop(all);
	if (tr->phase == TASK_DEAD)
		free_all(tr);
}

/* Servers replace an alloc whose templates change. If one sends other templates for a running task
 * nevertheless, the task's next start has them. */
static void
check_updated(struct alloc_runner *ar)
{
	for (unsigned k = 0; k < ar->n_tasks; k++) {
		const struct task_templates *all = task_templates_of(&ar->tasks[k]);

		if (all && all->n != ar->tasks[k].task->templates.n)
			free_all(&ar->tasks[k]);
	}
}

/* --- the environment --- */

static bool
is_env_rendered(const struct task_runner *tr)
{
	const struct task_templates *all = task_templates_of(tr);

	for (size_t i = 0; i < tr->task->templates.n; i++)
		if (tr->task->templates.v[i].env && (!all || i >= all->n || !all->v[i].rendered[0]))
			return false;
	return true;
}

bool
template_env_known(const struct task_runner *tr)
{
	return state_of(tr)->started.known || is_env_rendered(tr);
}

/* The next start has what the templates show; the task that runs, what it was started with. */
static void
put_env(const struct sup_alloc *sa, const struct task *task, struct string_map *vars)
{
	const struct task_runner *tr = alloc_find_task(sa, task->name);
	const struct task_templates *all = tr ? task_templates_of(tr) : NULL;

	if (!tr || (all && all->hides_env))
		return;
	if (state_of(tr)->started.known && (tr->phase == TASK_RUNNING || !is_env_rendered(tr)))
		put_all(&state_of(tr)->started.vars, vars);
	else
		put_rendered(all, vars);
}

static void
provide_env(struct sup *sup)
{
	task_env_provide(sup, TASK_ENV_TEMPLATES, put_env);
}

/* --- state.db --- */

static void
init_kept(struct alloc_runner *ar, const struct alloc_record *kept)
{
	for (unsigned k = 0; k < ar->n_tasks; k++)
		template_env_restore(&state_of(&ar->tasks[k])->started, &ar->tasks[k], kept);
	for (size_t i = 0; i < kept->templates.n; i++)
		for (unsigned k = 0; k < ar->n_tasks; k++)
			if (str_eq(ar->tasks[k].task->name, kept->templates.v[i].task))
				strings_add(&state_of(&ar->tasks[k])->kept,
				    str(kept->templates.v[i].digest));
}

static void
save_one(const char *task, const char *digest, struct alloc_record *rec)
{
	struct template_record *one = list_add(template_record, &rec->templates);

	str_set(&one->task, task);
	str_set(&one->digest, digest);
}

static void
save_applied(const struct alloc_runner *ar, struct alloc_record *rec)
{
	for (unsigned k = 0; k < ar->n_tasks; k++) {
		const struct templates_state *s = state_of(&ar->tasks[k]);
		const char *name = ar->tasks[k].task->name;

		for (size_t i = 0; s->all && i < s->all->n; i++)
			save_one(name, s->all->v[i].applied, rec);
		for (size_t i = 0; !s->all && i < s->kept.n; i++)
			save_one(name, s->kept.v[i], rec);
		template_env_save(&s->started, &ar->tasks[k], rec);
	}
}

static void
free_state(struct alloc_runner *ar)
{
	for (unsigned k = 0; k < ar->n_tasks; k++) {
		free_all(&ar->tasks[k]);
		strings_done(&state_of(&ar->tasks[k])->kept);
		template_env_forget(&state_of(&ar->tasks[k])->started);
	}
}

ALLOC_HOOK(templates, "templates", 0, .start = provide_env, .init = init_kept, .save = save_applied,
    .shutdown = free_state, .update = check_updated,
    .task.state_size = sizeof(struct templates_state), .task.fill = add_files,
    .task.filled = were_added, .task.runs = follow, .task.ends = stop_change);
