/* SPDX-License-Identifier: Apache-2.0 */
/*
 * task_templates.h: the templates of a task. All are rendered before the task starts, and again
 * when what they show has changed. Runs in: supervisor.
 *
 * template-renderer renders them (template_render.c) from values that are followed as long as the
 * task lives (template_values.h). The files are a part of each start, and are replaced while the
 * task runs (template_change.c), with the task's user in both cases.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TASK_TEMPLATES_H
#define DROVER_SUPERVISOR_ALLOC_TASK_TEMPLATES_H

#include <jansson.h>
#include <sha2.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/list.h"
#include "model/engine/field.h"
#include "supervisor/core/sup_timer.h"

struct alloc_runner;
struct causes;
struct queued;
struct spec_writer;
struct sup_alloc;
struct task;
struct task_file_read;
struct task_runner;
struct task_template;
struct template_change;
struct template_values;

/*
 * Renders the templates of the task and calls done(): within the call if there are none. A template
 * that cannot be rendered fails the task, and done() is not called then, nor once the task was told
 * to stop.
 */
void task_templates_prepare(struct task_runner *tr, void (*done)(struct task_runner *tr));
/* While the task waits for its templates, adds the cause that says what is missing, and why; else
 * returns false. */
bool task_templates_why(const struct task_runner *tr, struct causes *c);

/* Returns whether the variables that templates make for this task are known: those of its start, or
 * those that all templates show. */
bool template_env_known(const struct task_runner *tr);

/* --- for the template_*.c --- */

/* One template of a task. */
struct rendered {
	struct task_templates *of;
	size_t index; /* in the task, whose job may be updated meanwhile */

	/* template_render.c */
	char *text; /* from `source`; NULL: not read yet */
	size_t text_len;
	struct task_file_read *reading;
	struct queued *request; /* NULL: none is in progress */
	unsigned lost;          /* requests in a row that template-renderer did not survive */
	uint64_t count;         /* template_values_count() of the last request */
	json_t *needs;          /* of the last rendering; NULL: there was none */
	struct sup_timer wait;
	uint64_t waits_since_ms; /* 0: it does not wait */

	char *path;   /* of its file, below the alloc's directory; NULL: nobody asked for it yet */
	char *output; /* of the last rendering; NULL: it is not kept */
	size_t len;
	struct string_map env; /* of a template with env = true */

	/* Digests of outputs ("": none): of the last rendering, of the task's file, and of the last
	 * one whose change_mode was applied, which state.db has too. */
	char rendered[SHA256_DIGEST_STRING_LENGTH], written[SHA256_DIGEST_STRING_LENGTH],
	    applied[SHA256_DIGEST_STRING_LENGTH];
	bool giving; /* its file is being written: */
	char given[SHA256_DIGEST_STRING_LENGTH];
	bool applying; /* change_mode is to be applied */
};

struct task_templates {
	struct task_runner *tr;
	struct template_values *values;
	struct template_change *change; /* template_change.c; NULL: no change is being applied */
	void (*done)(struct task_runner *tr); /* NULL: the task does not wait */
	struct sup_timer blocked;             /* until the next event about what is missing */
	char *told;                           /* the last such event */
	struct sup_timer failing;             /* the task is failed soon, with this sentence */
	char *failure;
	bool hides_env;                    /* from the environment that templates see */
	LIST_ENTRY(task_templates) holder; /* template_limits.c: of those with held_bytes */
	size_t held_bytes;                 /* of the outputs that are kept */
	size_t n;
	struct rendered v[];
};

/* hook_templates.c */
/* Returns the state; NULL: the task has no templates, or nothing asked for them yet. */
struct task_templates *task_templates_of(const struct task_runner *tr);
const struct task_template *template_of(const struct rendered *one);
/* The output, which moves from *output, is that of the present values. */
void template_was_rendered(struct rendered *one, char **output, size_t len);
/* Fails the task, after the present callback. */
void template_failed(struct rendered *one, const char *sentence);
/* The running task keeps its file, as an event says; no value is followed for it any more. */
void template_keep(struct rendered *one, const char *why);
/* The task has its output, which is needed again only if it is not rendered again. */
void template_release_output(struct rendered *one);

/* template_render.c */
/* Renders it now, or once more after the rendering that is in progress. */
void task_template_render(struct rendered *one);
/* A value of it has changed: renders it, after its `wait` if it was rendered before. */
void task_template_render_later(struct rendered *one);
/* Cancels everything. */
void task_template_render_stop(struct rendered *one);

/* template_limits.c */
/* Count the output, which is kept now, or not any more. */
void template_hold(struct rendered *one);
void template_drop(struct rendered *one);
/* Return the sentence about the limit that the templates of the task exceed, or NULL. */
const char *template_over_needs(const struct task_templates *all);
const char *template_over_bytes(const struct task_templates *all);
/* If all outputs that waiting tasks hold exceed the limit of the node, returns one of the task that
 * holds most; else NULL. Other tasks are not to suffer from that one. */
struct rendered *template_over_node(void);

/* template_made.c */
/* For template_values_new(). */
const struct rendered *template_find_made(
    struct task_runner *tr, const json_t *need, json_t **ret_value);
/* Returns the first template whose file this one reads though it comes later, or is this one; or
 * NULL. */
const struct rendered *template_reads_later(const struct rendered *one);
/* Returns the output, which is kept, as a file's value for template-renderer. */
json_t *template_made_value(const struct rendered *maker);

/* template_change.c */
/* Whether the script of run_on_first_render is still to be run: its run is not saved as applied. */
bool template_runs_first(const struct rendered *one);
/* The task has started with its files: runs these scripts. No change is being applied. */
void template_change_first(struct task_templates *all);
/* Replaces the files of a running task whose output has changed, and applies change_mode. */
void template_change_begin(struct task_templates *all);
/* Cancels that. The task's next start has the new files. */
void template_change_stop(struct task_templates *all);

#endif
