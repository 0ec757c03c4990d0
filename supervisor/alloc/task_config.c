// SPDX-License-Identifier: Apache-2.0
/* task_config.c: the configuration of a task's driver, evaluated for a start. Runs in: supervisor.
 */
#include "supervisor/alloc/task_config.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_start.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/env_expand.h"

/* A task's request to job-parser, and the answer. */
struct task_config {
	struct task_runner *tr;
	void (*done)(struct task_runner *tr); /* may be NULL */
	struct queued *request;               /* NULL: it was answered */
	json_t *value;                        /* NULL: error says why */
	struct err error;
};

void
task_config_free(struct task_runner *tr)
{
	if (!tr->config)
		return;
	queue_forget(tr->config->request);
	json_decref(tr->config->value);
	free(tr->config);
	tr->config = NULL;
}

/* Returns job-parser's JSON, or NULL with *e. It is as foreign as the job is. */
static json_t *
read_answer(const struct task *task, bool evaluated, int fd, struct err *e)
{
	char sentence[ERR_MSG_SIZE];
	json_t *value = NULL;
	const void *map;
	size_t len;
	int r = fd_memfd_map(fd, PAR_RESULT_MAX, &map, &len);

	if (r < 0 || len == 0) {
		(void)err_say(e, -EAGAIN, "job-parser sent an answer that is not valid");
		return NULL;
	}
	if (evaluated) {
		value = json_loadb(map, len, JSON_REJECT_DUPLICATES, NULL);
		if (!json_is_object(value))
			(void)err_say(e, -EAGAIN, "job-parser sent an answer that is not valid");
	} else {
		(void)utf8_sanitize(sentence, sizeof sentence, map, len);
		(void)err_say(e, -EINVAL, "task %s: %s", task->name, sentence);
	}
	(void)munmap((void *)(uintptr_t)map, len);
	if (json_is_object(value))
		return value;
	json_decref(value);
	return NULL;
}

static void
on_evaluated(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	const struct par_config_evaluate_rep *answer = rep;
	cleanup_close int result = fd;
	struct task_config *c = arg;

	c->request = NULL;
	if (r >= 0)
		c->value = read_answer(c->tr->task, answer->evaluated, result, &c->error);
	else
		queue_explain(QUEUE_CONFIG, r, "the task's config block", e, &c->error);
	/* A configuration that needs too much will do so again; a helper that died will not. */
	if (r == -EIO || r == -ETIMEDOUT)
		c->error.code = -EINVAL;
	else if (r < 0)
		c->error.code = -EAGAIN;
	if (c->done)
		c->done(c->tr);
}

static int
send_request(struct task_config *c, const json_t *config, const json_t *values, struct err *e)
{
	cleanup_free char *first = mem_need(json_dumps(config, JSON_COMPACT));
	cleanup_free char *second = mem_need(json_dumps(values, JSON_COMPACT));
	const size_t first_len = strlen(first), second_len = strlen(second);
	const struct par_config_evaluate_req msg = { (uint32_t)first_len, (uint32_t)second_len };
	int fd;

	if (first_len > PAR_TEXT_MAX || second_len > PAR_TEXT_MAX - first_len)
		return err_say(e, -EINVAL,
		    "task %s: config: it and the task's environment have more than %d bytes",
		    c->tr->task->name, PAR_TEXT_MAX);
	fd = queue_texts(first, first_len, second, second_len);
	if (fd < 0)
		return err_set(e, fd, "pass the configuration of a task to job-parser");
	c->request = queue_ask(c->tr->ar->sup, QUEUE_CONFIG, &msg, fd, on_evaluated, c);
	return 0;
}

static int
ask_parser(struct task_config *c, struct err *e)
{
	const struct task_runner *tr = c->tr;
	const struct driver_ops *driver = driver_find(str(tr->task->driver));
	struct task_env env = { 0 };
	json_t *values;
	int r;

	if (!driver)
		return err_say(e, -EINVAL, "this node has no driver \"%s\"", str(tr->task->driver));
	r = task_start_env(tr, driver, &env, e);
	if (r < 0)
		return r;
	values = task_env_values(&env);
	r = send_request(c, tr->task->config, values, e);
	json_decref(values);
	task_env_done(&env);
	return r;
}

void
task_config_prepare(struct task_runner *tr, void (*done)(struct task_runner *tr))
{
	task_config_free(tr);
	if (!driver_config_is_plain(tr->task->config)) {
		tr->config = mem_new(struct task_config);
		*tr->config = (struct task_config){ .tr = tr, .done = done };
		if (ask_parser(tr->config, &tr->config->error) == 0)
			return;
	}
	if (done)
		done(tr);
}

void
task_config_follow(struct task_runner *tr)
{
	if (!tr->config)
		task_config_prepare(tr, NULL);
}

int
task_config_get(const struct task_runner *tr, struct task_env *env, json_t **ret, struct err *e)
{
	const struct task_config *c = tr->config;

	if (!c)
		return driver_config_evaluate(tr->task->config, env, ret, e);
	if (c->request)
		return err_say(e, -EAGAIN,
		    "the configuration of task %s is still being evaluated: try again",
		    tr->task->name);
	if (!c->value)
		return err_say(e, c->error.code, "%s", c->error.msg);
	*ret = json_incref(c->value);
	return 0;
}
