/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_eval.c: evaluates expressions. Runs in: cli, job-parser. */
#include "hcl/hcl_eval.h"

#include <string.h>

#include "common/similar.h"
#include "hcl/hcl_doc.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_number.h"
#include "lang/text.h"

static struct hcl_value *
find_variable(const struct hcl_scope *s, const char *name)
{
	for (; s; s = s->up)
		for (size_t i = 0; i < s->n; i++)
			if (strcmp(s->variables[i].name, name) == 0)
				return s->variables[i].value;
	return NULL;
}

static const struct hcl_scope *
outermost(const struct hcl_scope *s)
{
	while (s && s->up)
		s = s->up;
	return s;
}

/* The name at the root of a path. */
static const struct hcl_expr *
path_root(const struct hcl_expr *e)
{
	while (e->one)
		e = e->one;
	return e;
}

static void
refuse_name(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	const char *names[64] = { NULL }, *similar;
	size_t n = 0;

	for (const struct hcl_scope *s = scope; s; s = s->up)
		for (size_t i = 0; i < s->n && n < 64; i++)
			names[n++] = s->variables[i].name;
	similar = similar_name(e->name, names, n);
	if (!scope)
		hcl_fail(h, e->at, "variables cannot be used here");
	hcl_fail(h, e->at, "unknown variable \"%s\"%s%s%s", e->name,
	    similar ? ": did you mean \"" : "", similar ? similar : "", similar ? "\"?" : "");
}

static struct hcl_value *
eval_literal(struct hcl *h, const struct hcl_expr *e)
{
	struct hcl_value *v = e->value;

	if (v)
		return v;
	v = hcl_parse_number(h, e->number, strlen(e->number));
	if (!v)
		hcl_fail(h, e->at, "this number is too large or too long");
	return v;
}

/* true, false and null are words like others until nothing has that name. */
static struct hcl_value *
eval_keyword(struct hcl *h, const char *name)
{
	if (strcmp(name, "true") == 0 || strcmp(name, "false") == 0)
		return hcl_bool(h, *name == 't');
	return strcmp(name, "null") == 0 ? hcl_null(h, &hcl_type_any) : NULL;
}

static struct hcl_value *
eval_variable(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *v = eval_keyword(h, e->name);

	if (!v)
		v = find_variable(scope, e->name);
	if (!v)
		refuse_name(h, e, scope);
	return v;
}

static void
append_string(struct hcl *h, struct text *t, struct hcl_value *v, struct hcl_range at)
{
	const char *why = "";

	if (hcl_is_null(v))
		hcl_fail(h, at, "a null value cannot be part of a text");
	v = hcl_convert(h, v, &hcl_type_string, &why);
	if (!v)
		hcl_fail(h, at, "this cannot be part of a text: %s", why);
	text_bytes(t, v->string, v->len);
}

static struct hcl_value *
eval_template(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct text t = { .arena = hcl_arena(h) };
	bool unknown = false;

	for (size_t i = 0; i < e->n; i++) {
		struct hcl_value *v = hcl_eval(h, e->items[i].value, scope);

		if (v->state == HCL_UNKNOWN)
			unknown = true;
		else
			append_string(h, &t, v, e->items[i].value->at);
	}
	return unknown ? hcl_unknown(h, &hcl_type_string) : hcl_text_value(&t);
}

static struct hcl_value *
eval_join(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *list = hcl_eval(h, e->one, scope);
	struct text t = { .arena = hcl_arena(h) };

	if (list->state == HCL_UNKNOWN || !hcl_is_wholly_known(list))
		return hcl_unknown(h, &hcl_type_string);
	for (size_t i = 0; i < list->len; i++)
		append_string(h, &t, list->items[i], e->at);
	return hcl_text_value(&t);
}

static struct hcl_value *
eval_tuple(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value **items = hcl_alloc(h, e->n * sizeof(struct hcl_value *));

	for (size_t i = 0; i < e->n; i++)
		items[i] = hcl_eval(h, e->items[i].value, scope);
	return hcl_tuple(h, items, e->n);
}

static struct hcl_value *
eval_key(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	const char *word = hcl_expr_keyword(e), *why = "";
	struct hcl_value *v = word ? hcl_text(h, word) : hcl_eval(h, e, scope);

	if (hcl_is_null(v))
		hcl_fail(h, e->at, "a null value cannot be a key");
	v = hcl_convert(h, v, &hcl_type_string, &why);
	if (!v)
		hcl_fail(h, e->at, "this cannot be a key: %s", why);
	return v;
}

static struct hcl_value *
eval_object(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_member *members = hcl_alloc(h, e->n * sizeof *members);
	bool unknown = false;

	for (size_t i = 0; i < e->n; i++) {
		struct hcl_value *key = eval_key(h, e->items[i].key, scope);

		unknown |= key->state == HCL_UNKNOWN;
		members[i].key = key->string;
		members[i].key_len = key->len;
		members[i].value = hcl_eval(h, e->items[i].value, scope);
	}
	return unknown ? hcl_unknown(h, &hcl_type_any) : hcl_object(h, members, e->n);
}

struct hcl_value *
hcl_attribute(struct hcl *h, struct hcl_range at, struct hcl_value *one, const char *name)
{
	const char *names[64] = { NULL }, *similar;
	struct hcl_value *v;
	size_t n = 0;

	if (hcl_is_null(one))
		hcl_fail(h, at, "a null value has no attribute \"%s\"", name);
	if (one->state == HCL_UNKNOWN)
		return hcl_unknown(h, &hcl_type_any);
	if (!hcl_is_mapping(one))
		hcl_fail(h, at, "a %s has no attributes%s", hcl_value_type_name(h, one),
		    hcl_is_sequence(one) ? ": choose an element, as in a[0]" : "");
	v = hcl_get(one, name, strlen(name));
	if (v)
		return v;
	for (size_t i = 0; i < one->len && n < 64; i++)
		names[n++] = one->members[i].key;
	similar = similar_name(name, names, n);
	hcl_fail(h, at, "there is no attribute \"%s\" here%s%s%s", name,
	    similar ? ": did you mean \"" : "", similar ? similar : "", similar ? "\"?" : "");
}

static struct hcl_value *
index_mapping(struct hcl *h, struct hcl_range at, struct hcl_value *one, struct hcl_value *two)
{
	const char *why = "";
	struct hcl_value *v;

	two = hcl_convert(h, two, &hcl_type_string, &why);
	if (!two)
		hcl_fail(h, at, "this cannot be a key: %s", why);
	v = hcl_get(one, two->string, two->len);
	if (!v)
		hcl_fail(h, at, "there is no element \"%.80s\" here", two->string);
	return v;
}

static struct hcl_value *
index_sequence(struct hcl *h, struct hcl_range at, struct hcl_value *one, struct hcl_value *two)
{
	const char *why = "";
	int64_t i;

	if (one->kind == HCL_SET)
		hcl_fail(h, at, "the elements of a set have no index: convert it to a list first");
	two = hcl_convert(h, two, &hcl_type_number, &why);
	if (!two)
		hcl_fail(h, at, "this cannot be an index: %s", why);
	if (!hcl_number_int64(two->number, &i))
		hcl_fail(h, at, "an index must be a whole number");
	if (i < 0 || (uint64_t)i >= one->len)
		hcl_fail(
		    h, at, "there is no element %lld: the list has %zu", (long long)i, one->len);
	return one->items[i];
}

struct hcl_value *
hcl_index(struct hcl *h, struct hcl_range at, struct hcl_value *one, struct hcl_value *two)
{
	if (hcl_is_null(one))
		hcl_fail(h, at, "a null value has no elements");
	if (hcl_is_null(two))
		hcl_fail(h, at, "a null value cannot be an index");
	if (one->state == HCL_UNKNOWN || two->state == HCL_UNKNOWN)
		return hcl_unknown(h, &hcl_type_any);
	if (hcl_is_mapping(one))
		return index_mapping(h, at, one, two);
	if (hcl_is_sequence(one))
		return index_sequence(h, at, one, two);
	if (one->kind == HCL_NUMBER)
		hcl_fail(h, at, "a number has no elements; an address or a version needs quotes");
	hcl_fail(h, at, "a %s has no elements", hcl_value_type_name(h, one));
}

/* Whatever is no list is a list of one; null is an empty one. */
static struct hcl_value *
eval_splat(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *one = hcl_eval(h, e->one, scope), **items;
	struct hcl_scope inner = { .up = scope };
	bool is_list = hcl_is_sequence(one) && one->state == HCL_KNOWN;
	size_t n = is_list ? one->len : hcl_is_null(one) ? 0 : 1;
	const struct hcl_type **types;

	if (one->state == HCL_UNKNOWN)
		return hcl_unknown(h, &hcl_type_any);
	if (hcl_is_null(one) && hcl_is_sequence(one))
		hcl_fail(h, e->at, "a null list has no elements");
	items = hcl_alloc(h, n * sizeof(struct hcl_value *));
	types = hcl_alloc(h, n * sizeof(struct hcl_type *));
	for (size_t i = 0; i < n; i++) {
		inner.element = is_list ? one->items[i] : one;
		items[i] = hcl_eval(h, e->two, &inner);
	}
	if (one->kind != HCL_LIST && one->kind != HCL_SET)
		return hcl_tuple(h, items, n);
	for (size_t i = 0; i < n; i++)
		types[i] = hcl_type_of(h, items[i]);
	return hcl_list(h, n > 0 ? hcl_unify(h, types, 1) : &hcl_type_any, items, n);
}

static struct hcl_value *
eval_element(const struct hcl_scope *scope)
{
	while (!scope->element)
		scope = scope->up;
	return scope->element;
}

struct loop {
	struct hcl *h;
	const struct hcl_for *loop;
	struct hcl_scope scope;
	struct hcl_variable variables[2];
	struct hcl_value **items;   /* the results, or */
	struct hcl_member *members; /* those with keys */
	size_t n;
	bool unknown;
};

static void
loop_once(struct loop *l, struct hcl_value *key, struct hcl_value *value)
{
	struct hcl_value *k;

	l->variables[0] = (struct hcl_variable){ l->loop->value_name, value };
	l->variables[1] = (struct hcl_variable){ l->loop->key_name, key };
	if (l->loop->condition) {
		bool unknown;

		if (!hcl_eval_condition(l->h, l->loop->condition, &l->scope, &unknown)) {
			l->unknown |= unknown;
			return;
		}
	}
	if (!l->loop->key) {
		l->items[l->n++] = hcl_eval(l->h, l->loop->value, &l->scope);
		return;
	}
	k = hcl_eval(l->h, l->loop->key, &l->scope);
	if (hcl_is_null(k))
		hcl_fail(l->h, l->loop->key->at, "a null value cannot be a key");
	k = hcl_convert(l->h, k, &hcl_type_string, NULL);
	if (!k)
		hcl_fail(l->h, l->loop->key->at, "a key must be a string");
	l->unknown |= k->state == HCL_UNKNOWN;
	l->members[l->n++] =
	    (struct hcl_member){ k->string, k->len, hcl_eval(l->h, l->loop->value, &l->scope) };
}

static void
loop_over(struct loop *l, const struct hcl_value *source)
{
	struct hcl_value *key, *value;

	for (size_t i = 0; i < source->len; i++) {
		value = hcl_element(l->h, source, i, &key);
		loop_once(l, key, value);
	}
}

static struct hcl_value *
find_made(const struct loop *l, size_t i)
{
	for (size_t j = 0; j < i; j++)
		if (l->members[j].key_len == l->members[i].key_len &&
		    memcmp(l->members[j].key, l->members[i].key, l->members[i].key_len) == 0)
			return l->members[j].value;
	return NULL;
}

/* { for … : key => value... }: each member is the tuple of the values with its key. */
static struct hcl_value *
group_members(struct loop *l)
{
	size_t groups = 0;

	for (size_t i = 0; i < l->n; i++) {
		struct hcl_value **items, *one = l->members[i].value, *made;

		hcl_step(l->h, i);
		made = NULL;
		for (size_t j = 0; j < groups && !made; j++)
			if (l->members[j].key_len == l->members[i].key_len &&
			    memcmp(l->members[j].key, l->members[i].key, l->members[i].key_len) ==
				0)
				made = l->members[j].value;
		if (made) {
			made->items[made->len++] = one;
			continue;
		}
		items = hcl_alloc(l->h, l->n * sizeof(struct hcl_value *));
		items[0] = one;
		l->members[groups] = l->members[i];
		l->members[groups++].value = hcl_tuple(l->h, items, 1);
	}
	return hcl_object(l->h, l->members, groups);
}

static void
refuse_equal_keys(struct loop *l, const struct hcl_expr *e)
{
	struct hcl_value *made = hcl_object(l->h, l->members, l->n);

	if (made->len == l->n)
		return;
	for (size_t i = 1; i < l->n; i++)
		if (find_made(l, i))
			hcl_fail(l->h, e->loop->key->at,
			    "two elements have the key \"%.80s\": put \"...\" after the value to "
			    "group them",
			    l->members[i].key);
}

static struct hcl_value *
eval_for(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *source = hcl_eval(h, e->loop->source, scope);
	struct loop l = { .h = h, .loop = e->loop, .scope = { .up = scope } };

	if (hcl_is_null(source))
		hcl_fail(h, e->loop->source->at, "\"for\" cannot go through a null value");
	if (source->state == HCL_UNKNOWN)
		return hcl_unknown(h, &hcl_type_any);
	if (!hcl_is_sequence(source) && !hcl_is_mapping(source))
		hcl_fail(h, e->loop->source->at, "\"for\" cannot go through a %s",
		    hcl_value_type_name(h, source));
	l.scope.variables = l.variables;
	l.scope.n = e->loop->key_name ? 2 : 1;
	l.items = hcl_alloc(h, source->len * sizeof(struct hcl_value *));
	l.members = hcl_alloc(h, e->loop->key ? source->len * sizeof *l.members : 0);
	loop_over(&l, source);
	if (l.unknown)
		return hcl_unknown(h, &hcl_type_any);
	if (!e->loop->key)
		return hcl_tuple(h, l.items, l.n);
	if (e->loop->grouped)
		return group_members(&l);
	refuse_equal_keys(&l, e);
	return hcl_object(h, l.members, l.n);
}

static struct hcl_value *
eval(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	switch (e->kind) {
	case HCL_EXPR_LITERAL:
		return eval_literal(h, e);
	case HCL_EXPR_TEMPLATE:
		return eval_template(h, e, scope);
	case HCL_EXPR_WRAP:
	case HCL_EXPR_PARENTHESES:
		return hcl_eval(h, e->one, scope);
	case HCL_EXPR_JOIN:
		return eval_join(h, e, scope);
	case HCL_EXPR_TUPLE:
		return eval_tuple(h, e, scope);
	case HCL_EXPR_OBJECT:
		return eval_object(h, e, scope);
	case HCL_EXPR_VARIABLE:
		return eval_variable(h, e, scope);
	case HCL_EXPR_ATTR:
		return hcl_attribute(h, e->at, hcl_eval(h, e->one, scope), e->name);
	case HCL_EXPR_INDEX:
		return hcl_index(h, e->at, hcl_eval(h, e->one, scope), hcl_eval(h, e->two, scope));
	case HCL_EXPR_SPLAT:
		return eval_splat(h, e, scope);
	case HCL_EXPR_ELEMENT:
		return eval_element(scope);
	case HCL_EXPR_CALL:
		return hcl_call_function(h, e, scope);
	case HCL_EXPR_UNARY:
		return hcl_unary(h, e->op, e->at, hcl_eval(h, e->one, scope));
	case HCL_EXPR_BINARY:
		return hcl_binary(
		    h, e->op, e->at, hcl_eval(h, e->one, scope), hcl_eval(h, e->two, scope));
	case HCL_EXPR_CONDITIONAL:
		return hcl_eval_conditional(h, e, scope);
	default:
		return eval_for(h, e, scope);
	}
}

/* If no scope knows the root of a path, the outermost scope gets the whole path. */
static struct hcl_value *
eval_missing(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	const struct hcl_scope *outer = outermost(scope);
	const char *root;

	if (!e->path || !outer || !outer->missing)
		return NULL;
	root = path_root(e)->name;
	if (find_variable(scope, root) || eval_keyword(h, root))
		return NULL;
	return outer->missing(h, outer->arg, e);
}

struct hcl_value *
hcl_eval(struct hcl *h, const struct hcl_expr *e, const struct hcl_scope *scope)
{
	struct hcl_value *v;

	hcl_step(h, 1);
	hcl_enter(h, e->at);
	v = eval_missing(h, e, scope);
	if (!v)
		v = eval(h, e, scope);
	hcl_exit(h);
	return v;
}
