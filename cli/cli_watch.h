/* SPDX-License-Identifier: Apache-2.0 */
/* cli_watch.h: follows evaluations and allocations until they are done. Runs in: cli. */
#ifndef DROVER_CLI_CLI_WATCH_H
#define DROVER_CLI_CLI_WATCH_H

#include <jansson.h>
#include <stdbool.h>

#include "cli/cli.h"

/* Polling interval: short at first, because most operations take less than a second. */
#define CLI_WATCH_FAST_MS  50
#define CLI_WATCH_SLOW_MS  500
#define CLI_WATCH_STILL_MS 10000 /* time without a change after which a line is printed */

/* Returns the time to the next poll, which grows; *step_ms starts at 0. */
void cli_watch_pause(unsigned *step_ms);

/* Prints why each group of FailedTGAllocs could not be placed. */
void cli_watch_say_failed(const struct cli *cli, const json_t *failed);
/* Follows the evaluation until it has ended and prints its placements, and why others failed.
 * Returns CLI_OK, CLI_UNPLACED, or -errno. */
int cli_watch_eval(struct cli *cli, const char *eval_id, struct err *e);
/* Follows the allocations that the evaluation placed until each runs or has ended, and prints their
 * tasks' events. Returns CLI_OK; CLI_FAILED if one failed, after printing why; -errno. */
int cli_watch_start(struct cli *cli, const char *job_id, const char *eval_id, struct err *e);

/* Which allocations to wait for. */
struct cli_watch_filter {
	const char *alloc_id, *job_id, *node_id; /* NULL: any */
	bool no_system;                          /* skip those of system jobs */
};
/* Waits until all of them have ended and prints each. Returns how many were seen running, or
 * -errno. */
int cli_watch_end(struct cli *cli, const struct cli_watch_filter *filter, struct err *e);

/* Returns true if the allocation runs or has ended: "complete", "failed", "lost". */
bool cli_alloc_has_ended(const json_t *alloc);
/* Returns true if the allocation failed or is lost. */
bool cli_alloc_has_failed(const json_t *alloc);

#endif
