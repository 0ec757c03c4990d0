/* SPDX-License-Identifier: Apache-2.0 */
/* filter_expr.h: the parsed form of a ?filter= expression. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_FILTER_EXPR_H
#define DROVER_SUPERVISOR_HTTP_FILTER_EXPR_H

#include <stddef.h>
#include <stdint.h>

#include "supervisor/http/api_filter.h"
#include "supervisor/http/filter_pattern.h"

#define FILTER_PARTS_MAX 8

enum filter_kind {
	FILTER_AND,
	FILTER_OR,
	FILTER_NOT,
	FILTER_ANY,
	FILTER_ALL,
	FILTER_EQUAL,
	FILTER_CONTAINS,
	FILTER_EMPTY,
	FILTER_NIL,
	FILTER_MATCHES
};

struct filter_node {
	enum filter_kind kind;
	const struct filter_node *a, *b; /* of AND, OR; a of NOT, ANY, ALL */
	/* The field, of ANY, ALL and the kinds after them: Meta["tier"] is Meta, tier. */
	const char *parts[FILTER_PARTS_MAX];
	size_t n_parts;
	const char *value;
	/* The names that ANY and ALL give to key and item; NULL: none. If the expression has only
	 * one name, it stands for the key of a map, and for the item of a list. */
	const char *key_name, *item_name;
	struct filter_pattern *pattern;
};

struct api_filter {
	struct filter_budget *budget;
	struct filter_node *nodes; /* an upper bound of their number */
	size_t n_nodes;
	const struct filter_node *root;
	char *words; /* the text of all tokens, each ending with NUL */
	size_t words_len;
	/* CPU time in ns, summed over all evaluated objects. */
	int64_t used_ns;
	unsigned steps; /* counted between two looks at the clock */
};

#endif
