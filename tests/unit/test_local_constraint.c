// SPDX-License-Identifier: Apache-2.0
/* test_local_constraint.c: every operand of constraints with values on each side; the results are
 * those of Nomad 2.0. */
#include <string.h>

#include "supervisor/server/place/local_constraint.h"
#include "supervisor/server/place/version_match.h"
#include "tests/unit/unit.h"

/* The left side is the attribute "x" of the node, which has none if the text is NULL. */
static bool
holds(const char *left, const char *operand, const char *right)
{
	struct constraint c = { 0 };
	struct node node;
	bool r;

	node_init(&node);
	if (left)
		string_map_set(&node.attributes, "x", left);
	str_set(&c.l_target, "${attr.x}");
	str_set(&c.operand, operand);
	str_set(&c.r_target, right);
	r = local_constraint_holds(&node, &c);
	constraint_done(&c);
	node_done(&node);
	return r;
}

START_TEST(operands)
{
	static const struct {
		const char *left, *operand, *right;
		bool holds;
	} cases[] = {
		{ "a", "=", "a", true },
		{ "a", "", "a", true },
		{ "a", "==", "A", false },
		{ "a", "is", "a ", false },
		{ NULL, "=", "", false },
		{ "a", "!=", "b", true },
		{ "a", "not", "a", false },
		{ NULL, "!=", "b", true },
		{ "2", "<", "10", true },
		{ "2", ">", "10", false },
		{ "2", "<", "10a", false }, /* as bytes */
		{ "-5", "<", "3", true },
		{ "+5", ">=", "5", true },
		{ "1.5", "<", "1.25", false },
		{ "1e3", ">", "999", true },
		{ " 2", "<", "10", true }, /* as bytes: a space is first */
		{ "9223372036854775808", ">", "9223372036854775807", false }, /* as numbers */
		{ "nan", "<=", "nan", false },
		{ "abc", "<=", "abd", true },
		{ NULL, "<", "10", false },
		{ "linux", "regexp", "^lin", true },
		{ "linux", "regexp", "nu", true },
		{ "linux", "regexp", "^nu", false },
		{ "linux", "regexp", "(", false },
		{ "a,b, c", "set_contains", "c,a", true },
		{ "a,b, c", "set_contains_all", "a, d", false },
		{ "a,b, c", "set_contains_any", "d , c", true },
		{ "a,b", "set_contains_any", "x", false },
		{ "ab", "set_contains", "a", false },
		{ "", "is_set", NULL, true },
		{ NULL, "is_set", NULL, false },
		{ NULL, "is_not_set", NULL, true },
		{ "a", "is_not_set", NULL, false },
		{ "1.2.3", "version", ">= 1.2, < 2", true },
		{ NULL, "version", ">= 1.2", false },
		{ "x", "version", ">= 1.2", false },
		{ "1.3.0-beta1", "version", ">= 1.2", false },
		{ "1.3.0-beta1", "semver", ">= 1.2.0", true },
		{ "a", "distinct_hosts", NULL, true },
		{ "a", "like", "a", false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++)
		ck_assert_msg(
		    holds(cases[i].left, cases[i].operand, cases[i].right) == cases[i].holds,
		    "%s %s %s", str(cases[i].left), cases[i].operand, str(cases[i].right));
}
END_TEST

START_TEST(targets)
{
	static const struct {
		const char *target;
		bool found;
	} cases[] = { { "${node.unique.id}", true }, { "${node.unique.name}", true },
		{ "${node.datacenter}", true }, { "${node.class}", true }, { "${node.pool}", true },
		{ "${node.region}", false }, { "${meta.rack}", true }, { "${meta.none}", false },
		{ "${attr.none}", false }, { "${env.HOME}", false }, { "literal", true } };
	struct constraint c = { 0 };
	struct node node;

	node_init(&node);
	string_map_set(&node.meta, "rack", "r1");
	str_set(&c.operand, "is_set");
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		str_set(&c.l_target, cases[i].target);
		ck_assert_msg(
		    local_constraint_holds(&node, &c) == cases[i].found, "%s", cases[i].target);
	}
	constraint_done(&c);
	node_done(&node);
}
END_TEST

START_TEST(ranges_of_versions)
{
	static const struct {
		const char *version, *range;
		bool plain, semver;
	} cases[] = {
		{ "1.2.3", "1.2.3", true, true },
		{ "v1.2.3", "= v1.2.3", true, true },
		{ "1.2", "= 1.2.0", true, true },
		{ "1.2.0.0", "= 1.2", true, true },
		{ "1.2.0.1", "> 1.2", true, true },
		{ "1.10", "> 1.9", true, true },
		{ "1.2.3+build5", "= 1.2.3", true, true },
		{ "1.2.3", "!= 1.2.3", false, false },
		{ "1.2.3", ">1.0,<2.0", true, true },
		{ "2.0.0", ">1.0,<2.0", false, false },
		{ "5.10.0amd64", ">= 5.10.0", false, false },
		{ "5.10.0amd64", ">= 5.9.0", false, true },
		{ "1.0.0-rc1", ">= 1.0.0-beta1", true, true },
		{ "1.0.1-rc1", ">= 1.0.0-beta1", false, true },
		{ "1.0.0-rc1", "< 1.0.0", false, true },
		{ "1.0.0-rc.2", "> 1.0.0-rc.1", true, true },
		{ "1.0.0-rc.10", "> 1.0.0-rc.9", true, true },
		{ "1.0.0-rc", "> 1.0.0-1", true, true },
		{ "1.0.0-1.1", "> 1.0.0-1", true, true },
		{ "1.2.9", "~> 1.2.3", true, false },
		{ "1.3.0", "~> 1.2.3", false, false },
		{ "1.9.0", "~> 1.2", true, false },
		{ "2.0.0", "~> 1.2", false, false },
		{ "1.2.3", "~> 1.2.3.4", false, false },
		{ "3", "~> 2", true, false },
		{ "1.2.3", ">= 1.2.", false, false },
		{ "1.2.", ">= 1.2", false, false },
		{ "1.2.3", ">= 1.2,", false, false },
		{ "1.2.3", "", false, false },
		{ "1.2.3", ">= 99999999999999999999", false, false },
		{ "1", ">= 1beta", true, false },
		{ "1", ">= 1-", true, false },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		ck_assert_msg(version_matches(cases[i].version, cases[i].range, VERSION_PLAIN) ==
				  cases[i].plain,
		    "%s version %s", cases[i].version, cases[i].range);
		ck_assert_msg(version_matches(cases[i].version, cases[i].range, VERSION_SEMVER) ==
				  cases[i].semver,
		    "%s semver %s", cases[i].version, cases[i].range);
	}
}
END_TEST

START_TEST(peers)
{
	static const struct {
		const char *left, *operand, *right;
		size_t most; /* allocs on the node */
		const char *reason;
	} cases[] = {
		{ NULL, "distinct_hosts", NULL, 1, "distinct_hosts" },
		{ NULL, "distinct_hosts", "true", 1, "distinct_hosts" },
		{ NULL, "distinct_hosts", "yes", 1, "distinct_hosts" },
		{ NULL, "distinct_hosts", "false", 9, NULL },
		{ "${attr.x}", "distinct_property", NULL, 1,
		    "distinct_property: ${attr.x}=v used by 1 allocs" },
		{ "${attr.x}", "distinct_property", "3", 3,
		    "distinct_property: ${attr.x}=v used by 3 allocs" },
		{ "${attr.y}", "distinct_property", "3", 0, "missing property \"${attr.y}\"" },
		{ "${attr.x}", "=", "other", 9, NULL },
	};
	struct node node;

	node_init(&node);
	string_map_set(&node.attributes, "x", "v");
	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct constraint c = { 0 };
		char reason[200];
		size_t n = 0;

		str_set(&c.l_target, cases[i].left);
		str_set(&c.operand, cases[i].operand);
		str_set(&c.r_target, cases[i].right);
		while (n < 9 && local_constraint_permits(&node, &c, n, reason, sizeof reason))
			n++;
		ck_assert_uint_eq(n, cases[i].most);
		if (cases[i].reason)
			ck_assert_str_eq(reason, cases[i].reason);
		constraint_done(&c);
	}
	node_done(&node);
}
END_TEST

/* Returns the first fault of a job with this constraint in its group or task; NULL: none. */
static char *
find_fault(const struct constraint *c, bool in_task)
{
	struct problems p = { 0 };
	struct constraint *copy;
	struct task_group *g;
	struct task *t;
	char *fault;
	struct job job;

	job_init(&job);
	g = list_add(task_group, &job.task_groups);
	str_set(&g->name, "g");
	t = list_add(task, &g->tasks);
	str_set(&t->name, "t");
	copy =
	    in_task ? list_add(constraint, &t->constraints) : list_add(constraint, &g->constraints);
	constraint_copy(c, copy);
	local_constraint_validate(&job, &p);
	fault = p.list.n ? strdup(p.list.v[0]) : NULL;
	problems_done(&p);
	job_done(&job);
	return fault;
}

START_TEST(faults)
{
	static const struct {
		struct constraint c;
		bool in_task;
		const char *fault; /* a part of it */
	} cases[] = {
		{ { "${attr.x}", "1", "=" }, false, NULL },
		{ { "", "1", "=" }, false,
		    "group \"g\": constraint: operator \"=\" needs an attr" },
		{ { "${attr.x}", "", "<" }, true,
		    "task \"t\": constraint: operator \"<\" needs a v" },
		{ { "${attr.x}", "1", "like" }, false, "there is no operator \"like\"" },
		{ { "${attr.x}", "1", "is_set" }, false, "takes no value" },
		{ { "${attr.x}", "(", "regexp" }, false, "operator \"regexp\"" },
		{ { "${attr.x}", "~> 1.2", "version" }, false, NULL },
		{ { "${attr.x}", "~> 1.2", "semver" }, false, "is not a range of versions" },
		{ { "${attr.x}", "0", "distinct_property" }, false, "at least 1" },
		{ { "${attr.x}", "2", "distinct_property" }, false, NULL },
		{ { "", "", "distinct_hosts" }, false, NULL },
		{ { "", "", "distinct_hosts" }, true, "not for a task" },
		{ { "${device.model}", "x", "=" }, false, "devices" },
	};

	for (size_t i = 0; i < ELEMENTSOF(cases); i++) {
		struct constraint c = { 0 };
		char *fault;

		str_set(&c.l_target, cases[i].c.l_target);
		str_set(&c.r_target, cases[i].c.r_target);
		str_set(&c.operand, cases[i].c.operand);
		fault = find_fault(&c, cases[i].in_task);
		if (cases[i].fault)
			ck_assert_msg(
			    fault && strstr(fault, cases[i].fault), "%zu: %s", i, str(fault));
		else
			ck_assert_msg(!fault, "%zu: %s", i, str(fault));
		free(fault);
		constraint_done(&c);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, operands);
	tcase_add_test(tc, targets);
	tcase_add_test(tc, ranges_of_versions);
	tcase_add_test(tc, peers);
	tcase_add_test(tc, faults);
}

int
main(void)
{
	return unit_run("local_constraint", add);
}
