/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template_values.h: what the templates of a task have asked for, variables, services and files,
 * and what is known of it. Each value is followed until no template needs it any more. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_TEMPLATE_VALUES_H
#define DROVER_SUPERVISOR_ALLOC_TEMPLATE_VALUES_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

struct rendered;
struct task_runner;
struct template_values;

/* Returns the template of this task that makes the file which a need names, and its output as a
 * value if it is known (else template_values_made() comes); NULL: none makes it. */
typedef const struct rendered *template_find_made_fn(
    struct task_runner *tr, const json_t *need, json_t **ret_value);

/* changed() is called when a value has come or has changed, or when the reason why it is not known
 * has changed; never from within a call below but template_values_made(). need is its name, such as
 * nomad.var.block(nomad/jobs/web@default.global). */
struct template_values *template_values_new(struct task_runner *tr,
    void (*changed)(struct task_runner *tr, const char *need), template_find_made_fn *find_made);
/* Ignores NULL. */
void template_values_free(struct template_values *v);

/* Begins to follow what a rendering asked for: the list `needs` of an answer of template-renderer
 * (ren_render_req in proto/ipc_records.def). */
void template_values_follow(struct template_values *v, const json_t *needs);
/* Another template of the task was rendered: its output is the value of its file. */
void template_values_made(struct template_values *v, const struct rendered *maker,
    json_t *(*value)(const struct rendered *maker));
/* Ends following everything that is not in a list of needs which _keep() got before. */
void template_values_keep(struct template_values *v, const json_t *needs);
void template_values_sweep(struct template_values *v);

/* Returns the known values of these needs, as template-renderer takes them; the caller owns the
 * object. needs may be NULL. */
json_t *template_values_known(const struct template_values *v, const json_t *needs);
/* Counts the values that came and the changes of values. */
uint64_t template_values_count(const struct template_values *v);
/* Returns whether a value of these needs has come or changed since the count was this. */
bool template_values_newer(const struct template_values *v, const json_t *needs, uint64_t count);
/* Returns why the value of a need is not known, if that is known; else NULL. */
const char *template_values_problem(const struct template_values *v, const char *need);

/* Returns the first line of an answer of template-renderer, an object whose "needs" are a list, and
 * in *ret_at where the output begins. The caller owns it. NULL: the answer is not valid. */
json_t *template_answer_read(const char *map, size_t len, size_t *ret_at);
/* Returns the name of one of the needs, or "". */
const char *template_need_name(const json_t *need);
/* Returns whether the list has a need of this name. */
bool template_needs_have(const json_t *needs, const char *name);

#endif
