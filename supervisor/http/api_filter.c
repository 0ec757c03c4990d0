// SPDX-License-Identifier: Apache-2.0
/* api_filter.c: evaluates ?filter= expressions on JSON objects. Runs in: supervisor. */
#include "supervisor/http/api_filter.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/duration.h"
#include "supervisor/http/filter_expr.h"

#define SUBJECT_MAX 16384 /* bytes of a text that a pattern is matched against */
/* CPU time limit of one filter for all objects of a list; any and all can be nested. */
#define USED_MAX_NS   INT64_C(1000000000)
#define STEPS_TO_LOOK 1024
/* Filters with one budget may use 1/SHARE of the elapsed time as CPU time; unused time accumulates
 * up to SAVED_MAX_NS. A filter that takes less than LEAST_NS is never refused. */
#define SHARE        4
#define SAVED_MAX_NS (2 * USED_MAX_NS)
#define LEAST_NS     INT64_C(10000000)

/* The names that any and all give to an item and its key. */
struct scope {
	const struct scope *outer;
	const char *name; /* NULL: nothing */
	const json_t *value;
};

struct matcher {
	struct api_filter *f;
	const json_t *object;
	const struct scope *scope;
	int64_t until_ns; /* of filter_pattern_now_ns() */
	struct err *e;
};

void
api_filter_free(struct api_filter *f)
{
	if (!f)
		return;
	for (size_t i = 0; i < f->n_nodes; i++)
		filter_pattern_free(f->nodes[i].pattern);
	free(f->nodes);
	free(f->words);
	free(f);
}

static int
find_item(const json_t *list, const char *part, const json_t **ret, struct err *e)
{
	if (!*part || part[strspn(part, "0123456789")])
		return err_say(
		    e, -EINVAL, "filter: \"%.80s\" is not the number of a list's item", part);
	*ret = json_array_get(list, strtoul(part, NULL, 10));
	return 0;
}

static const json_t *
find_first(const struct matcher *m, const char *name)
{
	for (const struct scope *s = m->scope; s; s = s->outer)
		if (s->name && strcmp(s->name, name) == 0)
			return s->value;
	return json_object_get(m->object, name);
}

/* A missing member below the first name is not an error: *ret is NULL. */
static int
find_field(const struct matcher *m, const struct filter_node *n, const json_t **ret)
{
	const json_t *at = find_first(m, n->parts[0]);
	int r = 0;

	if (!at)
		return err_say(
		    m->e, -EINVAL, "filter: there is no field \"%.80s\" here", n->parts[0]);
	for (size_t i = 1; i < n->n_parts && at && r == 0; i++) {
		if (json_is_array(at))
			r = find_item(at, n->parts[i], &at, m->e);
		else if (json_is_object(at) || json_is_null(at))
			at = json_object_get(at, n->parts[i]);
		else
			r = err_say(m->e, -EINVAL,
			    "filter: \"%.80s\" cannot be a field of a value that is neither a map "
			    "nor a list",
			    n->parts[i]);
	}
	*ret = at;
	return r;
}

static int
refuse_value(const struct filter_node *n, const char *why, struct err *e)
{
	return err_say(e, -EINVAL, "filter: \"%.80s\" %s", n->parts[n->n_parts - 1], why);
}

static int
equals(const struct filter_node *n, const json_t *value, struct err *e)
{
	char *end = NULL;
	double number;

	if (!value || json_is_null(value))
		return *n->value == '\0';
	if (json_is_string(value))
		return strcmp(json_string_value(value), n->value) == 0;
	if (json_is_boolean(value)) {
		if (strcmp(n->value, "true") != 0 && strcmp(n->value, "false") != 0)
			return refuse_value(n, "can only be true or false", e);
		return json_is_true(value) == (*n->value == 't');
	}
	if (json_is_integer(value)) {
		long long whole = strtoll(n->value, &end, 10);

		if (*end == '\0' && end != n->value)
			return json_integer_value(value) == whole;
	}
	if (!json_is_number(value))
		return refuse_value(n, "is a list or a map: use in, contains or is empty", e);
	number = strtod(n->value, &end);
	if (*end || end == n->value)
		return refuse_value(n, "can only be compared with a number", e);
	return json_number_value(value) == number;
}

static int
contains(const struct filter_node *n, const json_t *value, struct err *e)
{
	const json_t *item;
	size_t i;
	int r;

	if (!value || json_is_null(value))
		return 0;
	if (json_is_string(value))
		return strstr(json_string_value(value), n->value) != NULL;
	if (json_is_object(value))
		return json_object_get(value, n->value) != NULL;
	if (!json_is_array(value))
		return refuse_value(n, "is a single value, which cannot contain others", e);
	json_array_foreach ((json_t *)(uintptr_t)value, i, item) {
		r = equals(n, item, e);
		if (r != 0)
			return r;
	}
	return 0;
}

static int
is_empty(const struct filter_node *n, const json_t *value, struct err *e)
{
	if (!value || json_is_null(value))
		return 1;
	if (json_is_string(value))
		return json_string_length(value) == 0;
	if (json_is_object(value))
		return json_object_size(value) == 0;
	return json_is_array(value)
		   ? json_array_size(value) == 0
		   : refuse_value(n, "is a number or a boolean, which is never empty", e);
}

static int
fits_pattern(struct matcher *m, const struct filter_node *n, const json_t *value)
{
	m->f->steps |= STEPS_TO_LOOK - 2; /* the match may take long */
	if (value && !json_is_null(value) && !json_is_string(value))
		return refuse_value(n, "is not a text, so no pattern can match it", m->e);
	if (json_string_length(value) > SUBJECT_MAX)
		return refuse_value(n, "is a text that is too long for a pattern", m->e);
	return filter_pattern_fits(n->pattern, json_string_value(value) ?: "", m->until_ns, m->e);
}

/* The clock is not read at each step, because that is a system call. */
static int
check_time(const struct matcher *m)
{
	if (++m->f->steps % STEPS_TO_LOOK != 0 || filter_pattern_now_ns() < m->until_ns)
		return 0;
	return err_say(m->e, -EINVAL, "filter: it takes too long: more than %d s of CPU time",
	    (int)(USED_MAX_NS / NS_PER_S));
}

static int match(struct matcher *m, const struct filter_node *n);

/* Evaluates the expression of an any or all for one item. */
static int
match_item(struct matcher *m, const struct filter_node *n, json_t *key, const json_t *item)
{
	struct scope named_key = { m->scope, n->key_name, key };
	struct scope named_item = { &named_key, n->item_name, item };
	int r;

	m->scope = n->key_name == n->item_name && json_is_string(key) ? &named_key : &named_item;
	r = match(m, n->a);
	m->scope = named_key.outer;
	json_decref(key);
	return r;
}

static int
match_items(struct matcher *m, const struct filter_node *n, const json_t *items)
{
	json_t *mutable = (json_t *)(uintptr_t)items, *item;
	int all = n->kind == FILTER_ALL, r = all;
	const char *key;
	size_t i;

	if (json_is_array(items))
		json_array_foreach (mutable, i, item) {
			r = match_item(m, n, json_integer((json_int_t)i), item);
			if (r != all)
				return r;
		}
	else if (json_is_object(items))
		json_object_foreach (mutable, key, item) {
			r = match_item(m, n, json_string(key), item);
			if (r != all)
				return r;
		}
	else if (items && !json_is_null(items))
		return refuse_value(n, "is neither a list nor a map, which any and all need", m->e);
	return r;
}

static int
match_value(struct matcher *m, const struct filter_node *n)
{
	const json_t *value = NULL;
	int r = find_field(m, n, &value);

	if (r < 0)
		return r;
	switch (n->kind) {
	case FILTER_ANY:
	case FILTER_ALL:
		return match_items(m, n, value);
	case FILTER_EQUAL:
		return equals(n, value, m->e);
	case FILTER_CONTAINS:
		return contains(n, value, m->e);
	case FILTER_EMPTY:
		return is_empty(n, value, m->e);
	case FILTER_NIL:
		return !value || json_is_null(value);
	default:
		return fits_pattern(m, n, value);
	}
}

static int
match(struct matcher *m, const struct filter_node *n)
{
	int r = check_time(m);

	if (r < 0)
		return r;
	switch (n->kind) {
	case FILTER_NOT:
		r = match(m, n->a);
		return r < 0 ? r : !r;
	case FILTER_AND:
	case FILTER_OR:
		r = match(m, n->a);
		return r < 0 || r == (n->kind == FILTER_OR) ? r : match(m, n->b);
	default:
		return match_value(m, n);
	}
}

bool
api_filter_refers_to(const struct api_filter *f, const char *field)
{
	for (size_t i = 0; i < f->n_nodes; i++)
		if (f->nodes[i].n_parts > 0 && strcmp(f->nodes[i].parts[0], field) == 0)
			return true;
	return false;
}

/* Adds CPU time for the time that has passed. */
static void
add_to_budget(struct filter_budget *b)
{
	uint64_t now_ms = clock_ms();
	int64_t passed_ms = (int64_t)(now_ms - b->since_ms);

	b->since_ms = now_ms;
	if (passed_ms < SHARE * SAVED_MAX_NS / NS_PER_MS)
		b->saved_ns += passed_ms * NS_PER_MS / SHARE;
	else
		b->saved_ns = SAVED_MAX_NS;
	if (b->saved_ns > SAVED_MAX_NS)
		b->saved_ns = SAVED_MAX_NS;
}

int
api_filter_match(struct api_filter *f, const json_t *object, struct err *e)
{
	int64_t began_ns = filter_pattern_now_ns(), own_ns = USED_MAX_NS - f->used_ns,
		all_ns = LEAST_NS - f->used_ns, took_ns;
	struct matcher m = { .f = f, .object = object, .e = e };
	struct filter_budget *b = f->budget;
	int r;

	add_to_budget(b);
	if (all_ns < b->saved_ns)
		all_ns = b->saved_ns;
	m.until_ns = began_ns + (own_ns < all_ns ? own_ns : all_ns);
	r = match(&m, f->root);
	took_ns = filter_pattern_now_ns() - began_ns;
	f->used_ns += took_ns;
	b->saved_ns = b->saved_ns > took_ns ? b->saved_ns - took_ns : 0;
	if (r == -EINVAL && all_ns < own_ns && took_ns >= all_ns)
		return err_say(e, -EBUSY,
		    "filter: the filters of all requests take too much CPU time: try again later, "
		    "or use a filter that takes less than %lld ms",
		    (long long)(LEAST_NS / NS_PER_MS));
	return r;
}
