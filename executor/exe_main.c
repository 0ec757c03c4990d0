// SPDX-License-Identifier: Apache-2.0
/* exe_main.c: the executor: parent of one task. Runs in: executor. */
#include <unistd.h>

#include "common/crash.h"
#include "executor/exe_inside.h"
#include "executor/exe_start.h"

static struct exe executor;

static int
make_world(struct exe *x)
{
	int r = exe_pipes_make(x);

	if (r < 0)
		return r;
	CRASH_POINT(EXE_AFTER_PIPES);
	if ((r = exe_dirs_open(x)) < 0 || (r = exe_dirs_give(x)) < 0 ||
	    (r = exe_plugin_dirs_give(x)) < 0)
		return r;
	r = x->container                      ? exe_container_prepare(x)
	    : x->setup->driver == DRIVER_EXEC ? exe_mounts_make(x)
					      : exe_secrets_mount(x);
	if (r < 0)
		return r;
	CRASH_POINT(EXE_AFTER_NAMESPACE);
	return 0;
}

/* The order matters: pipes before the drop, because an unprivileged user can run out of pipe pages;
 * namespaces before the task; the record before the drop. */
static int
start(struct exe *x)
{
	int r;

	if ((r = exe_setup_read(x)) < 0)
		return r;
	exe_sandbox_prepare(x);
	r = x->session ? exe_session_join(x) : make_world(x);
	if (r < 0)
		return r;
	if ((r = exe_task_start(x)) < 0)
		return r;
	CRASH_POINT(EXE_AFTER_EXEC);
	exe_setup_done(x);
	x->record.state = EXE_RUNNING;
	x->record.detail = x->unmapped;
	(void)exe_record_write(x);
	CRASH_POINT(EXE_AFTER_START_RECORD);
	return exe_sandbox_drop(x);
}

int
main(int argc, char **argv)
{
	struct exe *x = &executor;

	if (argc != 2 || argv[1][0] == '-') /* exec-helper passes the run's id */
		return exe_health_main(argc, argv);
	crash_init();
	CRASH_POINT(EXE_START);
	if (start(x) < 0)
		return exe_serve_failure(x);
	CRASH_POINT(EXE_AFTER_DROP);
	return exe_serve(x);
}
