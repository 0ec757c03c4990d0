// SPDX-License-Identifier: Apache-2.0
/* local_constraint.c: the operands of constraints. The decision: it reads only its arguments. Runs
 * in: supervisor. */
#include "supervisor/server/place/local_constraint.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/duration.h"
#include "model/engine/walk.h"
#include "supervisor/http/filter_pattern.h"
#include "supervisor/server/place/local_operand.h"
#include "supervisor/server/place/version_match.h"

#define MATCH_NS_MAX (10 * NS_PER_MS) /* CPU time of one regular expression */

/* --- order --- */

static bool
read_integer(const char *text, int64_t *ret)
{
	char *end;

	if (!isdigit((unsigned char)text[strspn(text, "+-")]))
		return false;
	errno = 0;
	*ret = strtoll(text, &end, 10);
	return errno == 0 && *end == '\0';
}

static bool
read_number(const char *text, double *ret)
{
	char *end;

	if (*text == '\0' || isspace((unsigned char)*text))
		return false;
	errno = 0;
	*ret = strtod(text, &end);
	return errno == 0 && *end == '\0';
}

/* Compares as integers, else as numbers, else as bytes: -1, 0, 1; or 2 if there is no order (NaN).
 */
static int
compare(const char *left, const char *right)
{
	int64_t li, ri;
	double ld, rd;
	int r;

	if (read_integer(left, &li) && read_integer(right, &ri))
		return (li > ri) - (li < ri);
	if (read_number(left, &ld) && read_number(right, &rd))
		return ld < rd ? -1 : ld > rd ? 1 : ld == rd ? 0 : 2;
	r = strcmp(left, right);
	return (r > 0) - (r < 0);
}

static bool
is_less(const char *left, const char *right)
{
	return compare(left, right) == -1;
}

static bool
is_at_most(const char *left, const char *right)
{
	int r = compare(left, right);

	return r == -1 || r == 0;
}

static bool
is_greater(const char *left, const char *right)
{
	return compare(left, right) == 1;
}

static bool
is_at_least(const char *left, const char *right)
{
	int r = compare(left, right);

	return r == 1 || r == 0;
}

/* --- other operands --- */

static bool
is_equal(const char *left, const char *right)
{
	return strcmp(left, right) == 0;
}

static bool
is_unequal(const char *left, const char *right)
{
	return strcmp(left, right) != 0;
}

static bool
is_version(const char *left, const char *right)
{
	return version_matches(left, right, VERSION_PLAIN);
}

static int
check_version(const char *right, struct err *e)
{
	return version_range_check(right, VERSION_PLAIN, e);
}

static bool
is_semver(const char *left, const char *right)
{
	return version_matches(left, right, VERSION_SEMVER);
}

static int
check_semver(const char *right, struct err *e)
{
	return version_range_check(right, VERSION_SEMVER, e);
}

static bool
fits_pattern(const char *left, const char *right)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *pattern = NULL;
	struct err e = { 0 };

	return filter_pattern_new(right, &pattern, &e) == 0 &&
	       filter_pattern_fits(pattern, left, filter_pattern_now_ns() + MATCH_NS_MAX, &e) == 1;
}

static int
check_pattern(const char *right, struct err *e)
{
	cleanup_with(filter_pattern_free) struct filter_pattern *pattern = NULL;

	return filter_pattern_new(right, &pattern, e);
}

/* An element of a comma-separated set, without the space around it. */
struct element {
	const char *text;
	size_t len;
};

/* Takes the first element off *set; NULL after the last. */
static struct element
next_element(const char **set)
{
	const char *begin = *set, *end = begin + strcspn(begin, ",");

	*set = *end ? end + 1 : NULL;
	while (begin < end && isspace((unsigned char)*begin))
		begin++;
	while (end > begin && isspace((unsigned char)end[-1]))
		end--;
	return (struct element){ begin, (size_t)(end - begin) };
}

static bool
has_element(const char *set, struct element wanted)
{
	while (set) {
		struct element x = next_element(&set);

		if (x.len == wanted.len && memcmp(x.text, wanted.text, x.len) == 0)
			return true;
	}
	return false;
}

static bool
contains_all(const char *left, const char *right)
{
	while (right)
		if (!has_element(left, next_element(&right)))
			return false;
	return true;
}

static bool
contains_any(const char *left, const char *right)
{
	while (right)
		if (has_element(left, next_element(&right)))
			return true;
	return false;
}

static int
check_count(const char *right, struct err *e)
{
	int64_t n;

	if (*right == '\0' || (read_integer(right, &n) && n >= 1))
		return 0;
	return err_say(e, -EINVAL, "\"%.40s\" is not a number of allocations of at least 1", right);
}

#define BOTH (NEEDS_LEFT | NEEDS_RIGHT)
static const struct local_operand operands[] = {
	{ "=", BOTH, is_equal, NULL },
	{ "==", BOTH, is_equal, NULL },
	{ "is", BOTH, is_equal, NULL },
	{ "!=", BOTH, is_unequal, NULL },
	{ "not", BOTH, is_unequal, NULL },
	{ "<", BOTH, is_less, NULL },
	{ "<=", BOTH, is_at_most, NULL },
	{ ">", BOTH, is_greater, NULL },
	{ ">=", BOTH, is_at_least, NULL },
	{ "version", NEEDS_LEFT, is_version, check_version },
	{ "semver", NEEDS_LEFT, is_semver, check_semver },
	{ "regexp", NEEDS_LEFT, fits_pattern, check_pattern },
	{ "set_contains", BOTH, contains_all, NULL },
	{ "set_contains_all", BOTH, contains_all, NULL },
	{ "set_contains_any", BOTH, contains_any, NULL },
	{ "is_set", NEEDS_LEFT | NO_RIGHT | NOT_AFFINITY, NULL, NULL },
	{ "is_not_set", NEEDS_LEFT | NO_RIGHT | NOT_AFFINITY, NULL, NULL },
	{ "distinct_hosts", OF_PEERS, NULL, NULL },
	{ "distinct_property", NEEDS_LEFT | OF_PEERS, NULL, check_count },
};

const struct local_operand *
local_operand_find(const char *word)
{
	if (*word == '\0')
		word = "=";
	for (size_t i = 0; i < ELEMENTSOF(operands); i++)
		if (strcmp(operands[i].word, word) == 0)
			return &operands[i];
	return NULL;
}

/* --- targets --- */

static const char *
node_field(const struct node *node, const char *name)
{
	const struct {
		const char *name, *value;
	} fields[] = { { "unique.id", node->id }, { "unique.name", node->name },
		{ "datacenter", node->datacenter }, { "class", node->node_class },
		{ "pool", node->node_pool } };

	for (size_t i = 0; i < ELEMENTSOF(fields); i++)
		if (strcmp(name, fields[i].name) == 0)
			return str(fields[i].value);
	return NULL;
}

/* Returns the value of one side of a constraint: a text, or "${attr.x}", "${meta.x}" or "${node.x}"
 * on this node. NULL: the node has no such value. */
static const char *
resolve_target(const struct node *node, const char *target)
{
	size_t len = strlen(target);
	char name[256];

	if (len < 4 || strncmp(target, "${", 2) != 0 || target[len - 1] != '}')
		return target;
	if (len - 3 >= sizeof name)
		return NULL;
	(void)memcpy(name, target + 2, len - 3);
	name[len - 3] = '\0';
	if (strncmp(name, "attr.", 5) == 0)
		return string_map_get(&node->attributes, name + 5);
	if (strncmp(name, "meta.", 5) == 0)
		return string_map_get(&node->meta, name + 5);
	return strncmp(name, "node.", 5) == 0 ? node_field(node, name + 5) : NULL;
}

bool
local_constraint_holds(const struct node *node, const struct constraint *c)
{
	const struct local_operand *o = local_operand_find(str(c->operand));
	const char *left = resolve_target(node, str(c->l_target)),
		   *right = resolve_target(node, str(c->r_target));

	if (!o)
		return false;
	if (o->needs & OF_PEERS)
		return true;
	if (o->needs & NO_RIGHT)
		return (left != NULL) == (strcmp(o->word, "is_set") == 0);
	if (o->holds == is_unequal)
		return is_unequal(str(left), str(right));
	return left && right && o->holds(left, right);
}

/* distinct_hosts = false switches it off; any text that is no boolean leaves it on. */
static bool
is_off(const char *right)
{
	static const char *const words[] = { "0", "f", "F", "false", "FALSE", "False" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strcmp(right, words[i]) == 0)
			return true;
	return false;
}

bool
local_constraint_permits(
    const struct node *node, const struct constraint *c, size_t n, char *ret_reason, size_t size)
{
	const char *value;
	int64_t most = 1;

	if (str_eq(c->operand, "distinct_hosts")) {
		(void)snprintf(ret_reason, size, "distinct_hosts");
		return n == 0 || is_off(str(c->r_target));
	}
	if (!str_eq(c->operand, "distinct_property"))
		return true;
	value = resolve_target(node, str(c->l_target));
	if (!value) {
		(void)snprintf(ret_reason, size, "missing property \"%s\"", c->l_target);
		return false;
	}
	(void)read_integer(str(c->r_target), &most);
	(void)snprintf(
	    ret_reason, size, "distinct_property: %s=%s used by %zu allocs", c->l_target, value, n);
	return n < (uint64_t)most;
}

static bool
is_on_peers(const struct constraint *v, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		const struct local_operand *o = local_operand_find(str(v[i].operand));

		if (o && o->needs & OF_PEERS)
			return true;
	}
	return false;
}

bool
local_constraint_is_on_peers(const struct job *job)
{
	if (is_on_peers(job->constraints.v, job->constraints.n))
		return true;
	for (size_t i = 0; i < job->task_groups.n; i++)
		if (is_on_peers(
			job->task_groups.v[i].constraints.v, job->task_groups.v[i].constraints.n))
			return true;
	return false;
}
