/* SPDX-License-Identifier: Apache-2.0 */
/* cli_alloc.h: how allocations look, for every page that shows some. Runs in: drover. */
#ifndef DROVER_CLI_CLI_ALLOC_H
#define DROVER_CLI_CLI_ALLOC_H

#include <jansson.h>

#include "cli/cli.h"

/* A table of list stubs, the newest first; "None" when there are none. */
void cli_print_allocs(const struct cli *cli, const json_t *list);
/* Its task group in the job that it has; NULL: it has none. */
const json_t *cli_alloc_group(const json_t *alloc);
/* The text of the last event that tells why the allocation is not well, or "". Of the JSON, which
 * owns it. */
const char *cli_alloc_why(const json_t *alloc);
/* The task that a word or a flag (either may be NULL) names; *ret is NULL if neither does. -EINVAL
 * if both do, and differ. */
int cli_alloc_task_name(const char *word, const char *flag, const char **ret, struct err *e);
/*
 * The task that a word or a flag (either may be NULL) names, or the only one of the allocation. 0
 * with *ret, NULL before and the caller's to free; negative with *e.
 */
int cli_alloc_task(struct cli *cli, const char *alloc_id, const char *word, const char *flag,
    char **ret, struct err *e);

#endif
