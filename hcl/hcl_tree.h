/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl_tree.h: documents of HCL version 1 (Nomad's agent configuration, ACL policies, volume files)
 * or JSON, as a tree of literals. `plugin "exec" { … }` is the same tree as {"plugin": {"exec":
 * {…}}}. Links without expressions and values. Runs in: cli, job-parser, supervisor (ACL policies),
 * the launcher's configuration child.
 */
#ifndef DROVER_HCL_HCL_TREE_H
#define DROVER_HCL_HCL_TREE_H

#include "hcl/hcl.h"

#define HCL_TREE_BYTES_MAX ((size_t)1024 * 1024)

/* 1 MiB of source, 16 MiB of memory, a depth of 32. */
extern const struct hcl_limits hcl_tree_limits;

enum hcl_node_kind {
	HCL_NODE_NULL,
	HCL_NODE_BOOL,
	HCL_NODE_NUMBER,
	HCL_NODE_STRING,
	HCL_NODE_LIST,
	HCL_NODE_OBJECT
};

/* Members and elements keep the order of the text. A key may occur more than once, because blocks
 * can be repeated. */
struct hcl_node {
	enum hcl_node_kind kind;
	struct hcl_range at, key_at;
	const char *key;  /* key of an object's member; NULL for an element of a list */
	const char *text; /* string: its value, without NUL; number: as written; bool: "true" or
			     "false" */
	struct hcl_node *first; /* of an object or list */
	struct hcl_node *next;
};

/*
 * Parses a document; JSON if it begins with '{'. The text must be UTF-8 without NUL. Returns the
 * root, an object in the arena, or NULL after problems were added.
 */
const struct hcl_node *hcl_tree_parse(struct hcl *h, const struct hcl_source *source);
/* As hcl_tree_parse(), but a text may have "${", which stands for itself. */
const struct hcl_node *hcl_tree_parse_literal(struct hcl *h, const struct hcl_source *source);

/* Returns "a string", "a list" …, for error sentences. */
const char *hcl_node_kind_name(enum hcl_node_kind kind);

#endif
