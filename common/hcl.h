/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl.h: parses a configuration language into a tree. Reads HCL (blocks with labels, attributes,
 * strings, heredocs, numbers, booleans, lists, objects, comments; no expressions) and, if the text
 * starts with '{', JSON. Both give the same tree, in which `plugin "exec" { … }` is {"plugin":
 * {"exec": {…}}}. Runs in: the launcher's configuration child, supervisor (ACL policies of
 * servers).
 */
#ifndef DROVER_COMMON_HCL_H
#define DROVER_COMMON_HCL_H

#include <stddef.h>

#include "common/err.h"

#define HCL_BYTES_MAX (1024 * 1024)
#define HCL_DEPTH_MAX 32

enum hcl_kind { HCL_NULL, HCL_BOOL, HCL_NUMBER, HCL_STRING, HCL_LIST, HCL_OBJECT };

struct hcl_pos {
	unsigned line, column; /* counted from 1; columns are characters */
};

/* Members and elements keep the order of the text. A key may occur more than once, because blocks
 * can be repeated. */
struct hcl_node {
	enum hcl_kind kind;
	struct hcl_pos at, key_at;
	const char *key;  /* key of an object's member; NULL for an element of a list */
	const char *text; /* string: its value, UTF-8 without NUL; number: as written; bool: "true"
			     or "false" */
	struct hcl_node *first; /* of an object or list */
	struct hcl_node *next;
};

struct hcl_doc {
	struct hcl_node *root; /* an HCL_OBJECT; lives as long as the arena */
	void *arena;
};

/*
 * Parses len bytes; name is the file's name in error sentences. Returns 0, -EINVAL with
 * "name:line:column: expected …, found …", -E2BIG beyond HCL_BYTES_MAX or the arena, or -ENOMEM. On
 * success the caller releases *ret with hcl_doc_done(); on failure *ret is untouched.
 */
int hcl_parse(const char *text, size_t len, const char *name, struct hcl_doc *ret, struct err *e);
void hcl_doc_done(struct hcl_doc *doc);

/* Returns "a string", "a list" …, for error sentences. */
const char *hcl_kind_name(enum hcl_kind kind);

#endif
