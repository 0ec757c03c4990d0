/* SPDX-License-Identifier: Apache-2.0 */
/* cli_restart.h: restarts or replaces one batch of a job's allocations. Runs in: cli. */
#ifndef DROVER_CLI_CLI_RESTART_H
#define DROVER_CLI_CLI_RESTART_H

#include <jansson.h>

#include "cli/cli.h"
#include "model/engine/containers.h"

/* How the allocations of a job are restarted. */
struct cli_restart {
	struct cli *cli;
	const json_t *job;
	struct strings tasks; /* empty: those that run */
	bool all_tasks;       /* also those that have ended */
	bool reschedule;      /* replace the allocations instead */
	bool no_shutdown_delay;
};

/* The result of restarting a batch. */
struct cli_restart_result {
	size_t failed; /* allocations that could not be restarted; each was reported */
	bool hopeless; /* the next batch would fail as this one did: no node takes a replacement */
};

/* Restarts the allocations (list stubs) and waits until all run again, or their replacements do. */
struct cli_restart_result cli_restart_batch(
    const struct cli_restart *r, json_t *const *allocs, size_t n);

#endif
