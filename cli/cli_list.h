/* SPDX-License-Identifier: Apache-2.0 */
/* cli_list.h: prints a list of objects as a table. Runs in: drover. */
#ifndef DROVER_CLI_CLI_LIST_H
#define DROVER_CLI_CLI_LIST_H

#include "cli/cli_api.h"
#include "cli/cli_print.h"

/* Adds the cells of one object to the row that has just begun. */
typedef void cli_cells_fn(const struct cli *cli, struct cli_table *t, const json_t *object);

/* How objects of one kind are listed. */
struct cli_list {
	const char *none; /* the line for an empty list; NULL: an empty table */
	const char *const *heads;
	size_t n_heads;
	cli_cells_fn *cells;
};
#define CLI_HEADS(...)                                                                             \
	.heads = (const char *const[]){ __VA_ARGS__ },                                             \
	.n_heads = ELEMENTSOF(((const char *const[]){ __VA_ARGS__ }))

/* Prints the objects of an array, or of an object's members, one row for each. */
void cli_list_print(const struct cli *cli, const struct cli_list *list, const json_t *objects);
/* Prints the members of an object, sorted by name, one per line below this heading. */
void cli_map_print(const char *head, const json_t *map);
/* Gets target and prints its objects, or with -json the answer. Returns 0 or -errno with *e. */
int cli_list_get(struct cli *cli, const struct cli_list *list, const char *target, struct err *e);
/* Prints one object. */
typedef void cli_print_fn(const struct cli *cli, const json_t *object);
/* Gets an object and prints it, or with -json the answer. Returns 0 or -errno with *e. */
int cli_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e);
/* As cli_show(), followed by the allocations that `placed` answers, below this heading. */
int cli_show_with_allocs(struct cli *cli, const char *target, const char *placed, const char *head,
    cli_print_fn *print, struct err *e);

#endif
