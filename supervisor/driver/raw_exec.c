// SPDX-License-Identifier: Apache-2.0
/* raw_exec.c: the driver raw_exec, whose tasks are plain processes of their user, which is root by
 * default. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "supervisor/driver/driver.h"

#define OOM_SCORE_ADJ_MAX 1000 /* of the kernel; a negative one would protect the task */

static const char *const known[] = { "command", "args", "work_dir", "oom_score_adj",
	"denied_envvars", NULL };

/* Returns 0 with a value from 0 to OOM_SCORE_ADJ_MAX, or -EINVAL with *e. */
static int
read_oom_score_adj(const struct task *task, bool evaluated, uint32_t *ret, struct err *e)
{
	json_t *value = driver_config_get(task, "oom_score_adj");
	const char *text = json_string_value(value);
	long long score = json_integer_value(value);
	char *end = NULL;

	if (!value || driver_value_is_open(value, evaluated))
		return 0;
	if (text)
		score = strtoll(text, &end, 10);
	if ((!text && !json_is_integer(value)) || (text && (end == text || *end)) || score < 0 ||
	    score > OOM_SCORE_ADJ_MAX)
		return err_say(e, -EINVAL,
		    "task %s: config.oom_score_adj must be a whole number from 0 to %d", task->name,
		    OOM_SCORE_ADJ_MAX);
	*ret = (uint32_t)score;
	return 0;
}

static int
check_config(
    const struct agent_config *config, const struct task *task, bool evaluated, struct err *e)
{
	uint32_t score;
	int r = driver_check_command(task, known, evaluated, e);

	if (r < 0 || (r = driver_check_strings(task, "denied_envvars", evaluated, e)) < 0)
		return r;
	return read_oom_score_adj(task, evaluated, &score, e);
}

static int
fill_start(const struct agent_config *config, const struct task *task, const json_t *image,
    const struct task_net *net, struct exec_start *req, struct spec_writer *spec, struct err *e)
{
	driver_fill_command(task, spec);
	return read_oom_score_adj(task, true, &req->oom_score_adj, e);
}

const struct driver_ops driver_raw_exec = {
	.name = "raw_exec",
	.id = DRIVER_RAW_EXEC,
	.check = check_config,
	.fill = fill_start,
};
