/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl.h: a configuration language as a tree. Reads HCL (blocks with labels, attributes, strings,
 * heredocs, numbers, booleans, lists, objects, comments) and, when the text starts with '{', JSON:
 * both give the same tree, in which `plugin "exec" { … }` is {"plugin": {"exec": {…}}}. No
 * expressions. Runs in: the launcher's configuration child, supervisor (policies of servers).
 */
#ifndef DROVER_COMMON_HCL_H
#define DROVER_COMMON_HCL_H

#include <stddef.h>

#include "common/err.h"

#define HCL_BYTES_MAX (1024 * 1024)
#define HCL_DEPTH_MAX 32

enum hcl_kind { HCL_NULL, HCL_BOOL, HCL_NUMBER, HCL_STRING, HCL_LIST, HCL_OBJECT };

struct hcl_pos {
	unsigned line, column; /* from 1; columns count characters */
};

/* Members and elements keep the order of the text; a key may come more than once (blocks are
 * repeated). */
struct hcl_node {
	enum hcl_kind kind;
	struct hcl_pos at, key_at;
	const char *key;  /* of a member of an object; NULL for an element of a list */
	const char *text; /* string: its value, UTF-8 without NUL; number: as written; bool: "true"
			     or "false" */
	struct hcl_node *first; /* object, list */
	struct hcl_node *next;
};

struct hcl_doc {
	struct hcl_node *root; /* HCL_OBJECT; lives as long as the arena */
	void *arena;
};

/*
 * Parses len bytes; name stands in the sentence. 0, or -EINVAL with "name:line:column: expected …,
 * found …"; -E2BIG beyond HCL_BYTES_MAX or the arena; -ENOMEM. *ret is untouched on failure, else
 * hcl_doc_done() is the caller's to call.
 */
int hcl_parse(const char *text, size_t len, const char *name, struct hcl_doc *ret, struct err *e);
void hcl_doc_done(struct hcl_doc *doc);

/* "a string", "a list" … for sentences. */
const char *hcl_kind_name(enum hcl_kind kind);

#endif
