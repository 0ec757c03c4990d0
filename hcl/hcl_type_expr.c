// SPDX-License-Identifier: Apache-2.0
/* hcl_type_expr.c: type expressions, such as map(object({ port = number })). Runs in: cli,
 * job-parser. */
#include <stdlib.h>
#include <string.h>

#include "hcl/hcl_eval.h"

static const struct hcl_type *
read_word(struct hcl *h, const struct hcl_expr *e, const char *word, bool constraint)
{
	if (strcmp(word, "string") == 0)
		return &hcl_type_string;
	if (strcmp(word, "number") == 0)
		return &hcl_type_number;
	if (strcmp(word, "bool") == 0)
		return &hcl_type_bool;
	if (strcmp(word, "any") == 0 && constraint)
		return &hcl_type_any;
	if (strcmp(word, "any") == 0)
		hcl_fail(h, e->at, "the type \"any\" cannot be used here: an exact type is needed");
	if (strcmp(word, "list") == 0 || strcmp(word, "set") == 0 || strcmp(word, "map") == 0)
		hcl_fail(h, e->at, "the type %s needs the type of its elements, as in %s(string)",
		    word, word);
	if (strcmp(word, "tuple") == 0 || strcmp(word, "object") == 0)
		hcl_fail(h, e->at, "the type %s needs its parts, as in %s", word,
		    *word == 't' ? "tuple([string, number])" : "object({ name = string })");
	hcl_fail(h, e->at,
	    "unknown type \"%s\": expected string, number, bool, list, set, map, tuple or object",
	    word);
}

static int
compare_members(const void *a, const void *b)
{
	return strcmp(
	    ((const struct hcl_type_member *)a)->name, ((const struct hcl_type_member *)b)->name);
}

static struct hcl_type_member
read_member(struct hcl *h, const struct hcl_item *item, bool constraint)
{
	struct hcl_type_member m = { .name = hcl_expr_keyword(item->key) };
	const struct hcl_expr *e = item->value;

	if (!m.name)
		hcl_fail(h, item->key->at, "expected the name of an attribute");
	m.optional = e->kind == HCL_EXPR_CALL && strcmp(e->name, "optional") == 0;
	if (m.optional && !constraint)
		hcl_fail(h, e->at, "\"optional\" cannot be used here: an exact type is needed");
	if (m.optional && e->n != 1)
		hcl_fail(h, e->at, "expected a type, as in optional(string)");
	m.type = hcl_read_type(h, m.optional ? e->items[0].value : e, constraint);
	return m;
}

static const struct hcl_type *
read_object(struct hcl *h, const struct hcl_expr *e, bool constraint)
{
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);
	struct hcl_type_member *members;

	if (e->kind != HCL_EXPR_OBJECT)
		hcl_fail(h, e->at,
		    "expected the attributes of the object, as in object({ name = string })");
	members = hcl_alloc(h, e->n * sizeof *members);
	for (size_t i = 0; i < e->n; i++)
		members[i] = read_member(h, &e->items[i], constraint);
	qsort(members, e->n, sizeof *members, compare_members);
	for (size_t i = 1; i < e->n; i++)
		if (strcmp(members[i - 1].name, members[i].name) == 0)
			hcl_fail(h, e->at, "the attribute \"%s\" occurs twice", members[i].name);
	t->kind = HCL_OBJECT;
	t->n = e->n;
	t->members = members;
	return t;
}

static const struct hcl_type *
read_tuple(struct hcl *h, const struct hcl_expr *e, bool constraint)
{
	struct hcl_type *t = hcl_new_object(h, struct hcl_type);

	if (e->kind != HCL_EXPR_TUPLE)
		hcl_fail(
		    h, e->at, "expected the types of the elements, as in tuple([string, number])");
	t->kind = HCL_TUPLE;
	t->n = e->n;
	t->items = hcl_alloc(h, e->n * sizeof(struct hcl_type *));
	for (size_t i = 0; i < e->n; i++)
		t->items[i] = hcl_read_type(h, e->items[i].value, constraint);
	return t;
}

const struct hcl_type *
hcl_read_type(struct hcl *h, const struct hcl_expr *e, bool constraint)
{
	static const struct {
		const char *name;
		enum hcl_kind kind;
	} collections[] = { { "list", HCL_LIST }, { "set", HCL_SET }, { "map", HCL_MAP } };
	const char *word = hcl_expr_keyword(e);

	hcl_step(h, 1);
	if (word)
		return read_word(h, e, word, constraint);
	if (e->kind != HCL_EXPR_CALL || e->n != 1 || e->expand)
		hcl_fail(h, e->at, "expected a type, such as string or list(string)");
	if (strcmp(e->name, "object") == 0)
		return read_object(h, e->items[0].value, constraint);
	if (strcmp(e->name, "tuple") == 0)
		return read_tuple(h, e->items[0].value, constraint);
	for (size_t i = 0; i < sizeof collections / sizeof collections[0]; i++)
		if (strcmp(e->name, collections[i].name) == 0)
			return hcl_type_list(h, collections[i].kind,
			    hcl_read_type(h, e->items[0].value, constraint));
	hcl_fail(h, e->at, "unknown type \"%s\"", e->name);
}
