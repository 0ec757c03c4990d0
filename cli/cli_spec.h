/* SPDX-License-Identifier: Apache-2.0 */
/* cli_spec.h: reads specifications of objects, files in HCL, into the API's JSON: a table for each
 * block says which members it may have. Runs in: cli. */
#ifndef DROVER_CLI_CLI_SPEC_H
#define DROVER_CLI_CLI_SPEC_H

#include <jansson.h>
#include <stddef.h>

#include "hcl/hcl_tree.h"

struct cli_spec_member;

/* Reads a member's value into an object or list of the API. Adds problems to h, which never have
 * the value. */
typedef void cli_spec_read_fn(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value, json_t *into);

struct cli_spec_member {
	const char *file, *api; /* its names */
	cli_spec_read_fn *read;
};

/* The members that a block may have. */
struct cli_spec_block {
	const char *name; /* for sentences: "a capability block" */
	const struct cli_spec_member *members;
	size_t n;
};

#define CLI_SPEC_BLOCK(text, table)                                                                \
	{                                                                                          \
		.name = text, .members = table, .n = ELEMENTSOF(table)                             \
	}

/* Reads the members of an object; those that the table does not have are problems. */
void cli_spec_read_block(
    struct hcl *h, const struct cli_spec_block *block, const struct hcl_node *object, json_t *into);
/* A member that is a text, and one that is a block of texts. */
cli_spec_read_fn cli_spec_read_text, cli_spec_read_map;

/* Returns the text of a scalar; NULL after adding a problem. true is "1", as for Nomad. */
const char *cli_spec_text(struct hcl *h, const char *name, const struct hcl_node *value);
/* Sets the member to a value that was made for it. */
void cli_spec_set(struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value,
    json_t *into, json_t *made);
/* Returns the member of the API, made as an empty object or list if it is new. */
json_t *cli_spec_part(json_t *into, const char *name, json_t *(*make)(void));

/* The blocks of a member; in JSON a list of objects is as many blocks. The first is NULL if there
 * is none, or after a problem was added. */
const struct hcl_node *cli_spec_first_block(
    struct hcl *h, const struct cli_spec_member *m, const struct hcl_node *value);
const struct hcl_node *cli_spec_next_block(
    const struct hcl_node *value, const struct hcl_node *block);
#define cli_spec_foreach(block, h, m, value)                                                       \
	for (const struct hcl_node *block = cli_spec_first_block(h, m, value); block;              \
	     block = cli_spec_next_block(value, block))

#endif
