// SPDX-License-Identifier: Apache-2.0
/* par_config.c: evaluates the configuration of one task's driver. Runs in: a worker of job-parser.
 * Asked by: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "job-parser/par.h"
#include "jobspec/task_config.h"

DEFINE_CLEANUP(struct hcl *, hcl_free);
DEFINE_CLEANUP(json_t *, json_decref);

/* The memory for one configuration is that of task_config_limits, and more for the JSON. */
static const struct worker_limits limits = {
	.memory_bytes = (size_t)160 << 20, .cpu_seconds = 2, .texts_bytes = PAR_TEXT_MAX
};

static int
evaluate(const json_t *config, const json_t *values, struct worker_result *ret, struct err *e)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&task_config_limits);
	const char *text;
	size_t len;

	text = task_config_evaluate(h, config, values, &len);
	ret->flag = text != NULL;
	if (!text) {
		text = task_config_problem(h);
		len = strlen(text);
	}
	return worker_texts_end(text, len, PAR_RESULT_MAX, ret, e);
}

int
par_evaluate_config(int fd, const void *arg, struct worker_result *ret, struct err *e)
{
	const struct par_config_evaluate_req *req = arg;
	struct worker_texts texts = { .first_len = req->config_bytes,
		.second_len = req->values_bytes };
	cleanup_with(json_decref) json_t *config = NULL, *values = NULL;
	int r;

	r = worker_texts_begin(&limits, fd, &texts, e);
	if (r < 0)
		return r;
	json_set_alloc_funcs(mem_alloc, free);
	config = json_loadb(texts.first, texts.first_len, JSON_REJECT_DUPLICATES, NULL);
	values = json_loadb(texts.second, texts.second_len, JSON_REJECT_DUPLICATES, NULL);
	if (!json_is_object(config) || !json_is_object(values))
		return err_say(e, -EINVAL, "the configuration and its names are not JSON objects");
	return evaluate(config, values, ret, e);
}
