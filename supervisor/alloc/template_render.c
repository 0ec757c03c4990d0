// SPDX-License-Identifier: Apache-2.0
/*
 * template_render.c: has template-renderer render one template, until nothing that it asks for is
 * missing. Runs in: supervisor.
 *
 * The first rendering tells what the template needs. The values are followed, and each that comes
 * or changes leads to another rendering. An answer is as foreign as the template is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "proto/ipc_records.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_events.h"
#include "supervisor/alloc/task_file_read.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/alloc/task_templates.h"
#include "supervisor/alloc/template_values.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/env_expand.h"
#include "supervisor/node/node_interfaces.h"

#define LOST_MAX   3       /* renderings in a row that did not end by themselves */
#define AGAIN_USEC 1000000 /* before another try */

static void request(struct rendered *one);
static void on_wait_end(void *arg);

/* After an error that another try may not meet. */
static void
try_again(struct rendered *one)
{
	sup_timer_set(
	    one->of->tr->ar->sup, &one->wait, CLOCK_MONOTONIC, AGAIN_USEC, on_wait_end, one);
}

/* --- the answer --- */

static void
take_result(struct rendered *one, bool rendered, const char *map, size_t len)
{
	size_t at = 0;
	json_t *head = template_answer_read(map, len, &at);
	const char *problem = json_string_value(json_object_get(head, "problem"));
	cleanup_free char *output = NULL;
	char sentence[ERR_MSG_SIZE];
	const struct rendered *later;
	const char *over;
	bool newer;

	if (!head) {
		template_failed(one, "template-renderer sent an answer that is not valid, or that "
				     "asks for more than 512 values");
		return;
	}
	json_decref(one->needs);
	one->needs = json_incref(json_object_get(head, "needs"));
	if (problem) {
		(void)utf8_sanitize(sentence, sizeof sentence, problem, strlen(problem));
		template_failed(one, sentence);
	} else if ((over = template_over_needs(one->of))) {
		template_failed(one, over);
	} else if ((later = template_reads_later(one))) {
		(void)snprintf(sentence, sizeof sentence,
		    "it reads %.200s, which %s writes: a template can read only the files of those "
		    "before "
		    "it",
		    str(template_of(later)->dest_path),
		    later == one ? "it" : "a later template of this task");
		template_failed(one, sentence);
	} else {
		template_values_follow(one->of->values, one->needs);
		/* A value may have come or changed since the request. An output is used
		 * nevertheless: values can change faster than they are rendered. */
		newer = template_values_newer(one->of->values, one->needs, one->count);
		if (newer && !rendered)
			task_template_render(one);
		else if (newer && !template_of(one)->once)
			task_template_render_later(one);
		if (rendered) {
			output = mem_alloc(len - at + 1);
			memcpy(output, map + at, len - at);
			output[len - at] = '\0';
			template_was_rendered(one, &output, len - at);
		}
	}
	json_decref(head);
}

/* A process that died, was killed or was late may not be the next time; a template that needs too
 * much memory or processor time will be each time. A machine without room for a process has some
 * later. */
static void
handle_error(struct rendered *one, int r, const struct err *e)
{
	bool lost = r == -ECONNRESET || r == -ETIMEDOUT || r == -EIO;
	struct err why = { 0 };

	if (r != -EINVAL && r != -EFBIG && !(lost && ++one->lost >= LOST_MAX)) {
		try_again(one);
		return;
	}
	queue_explain(QUEUE_RENDER, r, "it", e, &why);
	template_failed(one, why.msg);
}

/* one is freed by the calls at the end if the task has failed. */
static void
on_rendered(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct ren_render_rep *answer = rep;
	cleanup_close int result = fd;
	struct rendered *one = arg;
	const void *map;
	size_t len;

	one->request = NULL;
	if (r < 0) {
		handle_error(one, r, e);
		return;
	}
	one->lost = 0;
	r = fd_memfd_map(result, REN_RESULT_MAX, &map, &len);
	if (r < 0) {
		template_failed(one, "template-renderer sent an answer that is not valid");
		return;
	}
	take_result(one, answer->rendered, map, len);
	if (len > 0)
		(void)munmap((void *)(uintptr_t)map, len);
}

/* --- the request --- */

/* The environment, and attributes and metadata of the node by their names in ${…}, without what
 * templates have added to it: else they would follow themselves. */
static json_t *
make_env(struct task_templates *all, struct err *e)
{
	const struct driver_ops *driver = driver_find(str(all->tr->task->driver));
	struct task_env env = { 0 };
	json_t *o = json_object(), *all_values;
	int r;

	if (!driver) {
		(void)err_say(
		    e, -EINVAL, "this node has no driver \"%s\"", str(all->tr->task->driver));
		return o;
	}
	all->hides_env = true;
	r = task_start_env(all->tr, driver, &env, e);
	all->hides_env = false;
	if (r < 0)
		return o;
	all_values = task_env_values(&env);
	(void)json_object_update(o, json_object_get(all_values, "node"));
	json_decref(all_values);
	for (size_t i = 0; i < env.vars.n; i++)
		(void)json_object_set_new(
		    o, env.vars.v[i].key, json_string(str(env.vars.v[i].value)));
	task_env_done(&env);
	return o;
}

/* Only sockaddr shows interfaces. A function's name cannot be computed. */
static json_t *
interfaces_for(const char *text, size_t len)
{
	return memmem(text, len, "sockaddr", strlen("sockaddr")) ? node_interfaces() : json_array();
}

static char *
make_values(struct rendered *one, const char *text, size_t len, struct err *e)
{
	struct alloc_runner *ar = one->of->tr->ar;
	const struct task_template *t = template_of(one);
	json_t *values = json_pack("{s:s, s:I, s:s, s:s, s:s, s:b, s:o, s:o, s:o}", "namespace",
	    *str(ar->sa->job->job.namespace) ? ar->sa->job->job.namespace : "default", "now_ns",
	    (json_int_t)clock_real_ns(), "denied", ar->sup->config->template.denied,
	    "left_delimiter", str(t->left_delim), "right_delimiter", str(t->right_delim),
	    "error_on_missing_key", t->error_on_missing_key, "env", make_env(one->of, e), "known",
	    template_values_known(one->of->values, one->needs), "interfaces",
	    interfaces_for(text, len));
	char *dumped = json_dumps(values, JSON_COMPACT);

	json_decref(values);
	if (!dumped && e->code == 0)
		(void)err_say(e, -EINVAL, "its delimiters are not UTF-8");
	return dumped;
}

static int
send_request(struct rendered *one, struct err *e)
{
	const struct task_template *t = template_of(one);
	const char *text = one->text ? one->text : str(t->embedded);
	size_t text_len = one->text ? one->text_len : strlen(text);
	cleanup_free char *values = make_values(one, text, text_len, e);
	size_t values_len = values ? strlen(values) : 0;
	const struct ren_render_req req = { (uint32_t)values_len, (uint32_t)text_len };
	int fd;

	if (e->code < 0)
		return e->code;
	if (values_len > REN_TEXT_MAX || text_len > REN_TEXT_MAX - values_len)
		return err_say(e, -EINVAL,
		    "it and the values that it asks for have more than %d bytes", REN_TEXT_MAX);
	fd = queue_texts(values, values_len, text, text_len);
	explicit_bzero(values, values_len); /* variables, which are secret */
	if (fd < 0)
		return err_set(e, fd, "pass a template to template-renderer");
	one->count = template_values_count(one->of->values);
	one->request = queue_ask_for(one->of->tr->ar->sup, QUEUE_RENDER,
	    alloc_job_hash(one->of->tr->ar), &req, fd, on_rendered, one);
	return 0;
}

static void
on_text(
    struct sup *sup, void *arg, int r, const char *text, size_t len, int *fd, const struct err *e)
{
	struct rendered *one = arg;
	struct err why = { 0 };

	one->reading = NULL;
	if (r == -EAGAIN) {
		try_again(one);
		return;
	}
	if (r < 0 && one->of->tr->phase == TASK_RUNNING) {
		(void)err_say(&why, r, "its source: %s", e->msg);
		template_keep(one, why.msg);
		return;
	}
	if (r < 0) {
		template_failed(one, e->msg);
		return;
	}
	one->text = mem_alloc(len + 1);
	memcpy(one->text, text, len);
	one->text[len] = '\0';
	one->text_len = len;
	request(one);
}

static void
request(struct rendered *one)
{
	const struct task_template *t = template_of(one);
	struct err e = { 0 };
	int r = 0;

	if (*str(t->source_path) && !one->text)
		one->reading = task_file_read(one->of->tr, t->source_path, on_text, one);
	else
		r = send_request(one, &e);
	if (r == -EINVAL || r == -E2BIG)
		template_failed(one, e.msg);
	else if (r < 0)
		try_again(one);
}

/* --- when --- */

void
task_template_render(struct rendered *one)
{
	sup_timer_cancel(&one->wait);
	one->waits_since_ms = 0;
	if (!one->request && !one->reading) /* else take_result() sees what is newer */
		request(one);
}

static void
on_wait_end(void *arg)
{
	task_template_render(arg);
}

static uint64_t
within(const struct agent_config *config, uint64_t ms)
{
	if (ms < config->template.bounds_min_ms)
		return config->template.bounds_min_ms;
	return ms > config->template.bounds_max_ms ? config->template.bounds_max_ms : ms;
}

/* The times of `wait` in milliseconds, within the limits of this node. */
static void
find_wait(const struct rendered *one, uint64_t *ret_min, uint64_t *ret_max)
{
	const struct agent_config *config = one->of->tr->ar->sup->config;
	const struct template_wait *own = template_of(one)->wait;

	*ret_min = config->template.wait_min_ms;
	*ret_max = config->template.wait_max_ms;
	if (!own)
		return;
	*ret_min = own->min > 0 ? (uint64_t)own->min / NS_PER_MS : 0;
	*ret_max = own->max == MODEL_UNSET ? 4 * *ret_min : (uint64_t)own->max / NS_PER_MS;
	*ret_min = within(config, *ret_min);
	*ret_max = within(config, *ret_max);
}

void
task_template_render_later(struct rendered *one)
{
	uint64_t now = clock_ms(), min, max, end;

	find_wait(one, &min, &max);
	if (!one->rendered[0] || min == 0) {
		task_template_render(one);
		return;
	}
	if (one->waits_since_ms == 0)
		one->waits_since_ms = now;
	end = one->waits_since_ms + max;
	if (now + min > end)
		min = end > now ? end - now : 0;
	sup_timer_set(
	    one->of->tr->ar->sup, &one->wait, CLOCK_MONOTONIC, min * 1000, on_wait_end, one);
}

void
task_template_render_stop(struct rendered *one)
{
	queue_forget(one->request);
	one->request = NULL;
	task_file_read_forget(one->reading);
	one->reading = NULL;
	sup_timer_cancel(&one->wait);
}
