// SPDX-License-Identifier: Apache-2.0
/* raw_exec.c: the driver raw_exec, whose tasks are plain processes of their user, which is root by
 * default. Runs in: supervisor. */
#include "supervisor/driver/driver.h"

static const char *const known[] = { "command", "args", "work_dir", NULL };

static int
check_config(
    const struct agent_config *config, const struct task *task, bool evaluated, struct err *e)
{
	return driver_check_command(task, known, evaluated, e);
}

static int
fill_start(const struct task *task, struct exec_start *req, struct spec_writer *spec, struct err *e)
{
	driver_fill_command(task, spec);
	return 0;
}

const struct driver_ops driver_raw_exec = {
	.name = "raw_exec",
	.id = DRIVER_RAW_EXEC,
	.check = check_config,
	.fill = fill_start,
};
