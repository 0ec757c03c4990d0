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
/* The flags of verbs that list objects. */
extern struct cli_list_options {
	const char *filter, *page_token;
	int64_t per_page; /* 0: all */
	bool quiet;
} cli_list_options;
extern const struct cli_flag cli_list_flags[];
#define CLI_LIST_FLAGS                                                                             \
	{ "filter", CLI_FLAG_STRING, &cli_list_options.filter, "EXPRESSION",                       \
		"list only what this expression selects" },                                        \
	    { "page-token", CLI_FLAG_STRING, &cli_list_options.page_token, "TOKEN",                \
		    "begin with the page that the page before names" },                            \
	    { "per-page", CLI_FLAG_NUMBER, &cli_list_options.per_page, "N",                        \
		    "list at most this many" },                                                    \
	{                                                                                          \
		"quiet", CLI_FLAG_BOOL, &cli_list_options.quiet, NULL, "print only ids"            \
	}

/* Prints one object, or a list. */
typedef void cli_print_fn(const struct cli *cli, const json_t *object);
/* Gets the part of a list that the flags of lists select, and prints it: by print(), with -json the
 * answer, with -quiet the ids. Returns 0 or -errno with *e. */
int cli_list_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e);
/* The same with a table. */
int cli_list_get(struct cli *cli, const struct cli_list *list, const char *target, struct err *e);
/* To be called when one object is shown: -EINVAL if a flag of lists was given. */
int cli_list_refuse_flags(struct err *e);
/* Gets an object and prints it, or with -json the answer. Returns 0 or -errno with *e. */
int cli_show(struct cli *cli, const char *target, cli_print_fn *print, struct err *e);
/* As cli_show(), followed by the allocations that `placed` answers, below this heading. */
int cli_show_with_allocs(struct cli *cli, const char *target, const char *placed, const char *head,
    cli_print_fn *print, struct err *e);

#endif
