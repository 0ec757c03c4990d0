/* SPDX-License-Identifier: Apache-2.0 */
/* cli_alloc.h: prints allocations, for every command that shows them. Runs in: cli. */
#ifndef DROVER_CLI_CLI_ALLOC_H
#define DROVER_CLI_CLI_ALLOC_H

#include <jansson.h>

#include "cli/cli.h"

/* Prints a table of all list stubs, newest first; "None" if there are none. */
void cli_print_all_allocs(const struct cli *cli, const json_t *list);
/* The same for a part of a page: of many allocations it shows the newest, those that failed or do
 * not run yet first, and how many it left out; with -verbose all. */
void cli_print_allocs(const struct cli *cli, const json_t *list);
/* The members of an event, and the head of the column of its text. */
struct cli_event_keys {
	const char *time, *kind, *text, *text_head;
};

/* Prints a task's or a node's events. */
void cli_print_events(
    const struct cli *cli, const json_t *events, const struct cli_event_keys *keys);
/* Shows one allocation, or with -json the answer. Returns 0 or -errno with *e. */
int cli_alloc_show(struct cli *cli, const char *id, struct err *e);
/* Returns the allocation's task group in its job; NULL if it has no job. */
const json_t *cli_alloc_group(const json_t *alloc);
/* Returns the text of the last event that explains why a task failed; if there is none, the
 * allocation's description. The JSON owns it. */
const char *cli_alloc_failure(const json_t *alloc);
/* Finds the task that an argument or a flag names (either may be NULL); *ret is NULL if neither
 * does. -EINVAL if they differ. */
int cli_alloc_task_name(const char *word, const char *flag, const char **ret, struct err *e);
/* Finds the task that an argument or a flag names (either may be NULL), or the only task of the
 * allocation. Returns 0 with *ret, which must be NULL before and which the caller frees; negative
 * with *e. */
int cli_alloc_task(struct cli *cli, const char *alloc_id, const char *word, const char *flag,
    char **ret, struct err *e);

#endif
