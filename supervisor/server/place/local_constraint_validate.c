// SPDX-License-Identifier: Apache-2.0
/* local_constraint_validate.c: finds faults of the constraints, affinities and spreads of a job.
 * Runs in: supervisor. */
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"
#include "model/engine/walk.h"
#include "supervisor/server/place/local_constraint.h"
#include "supervisor/server/place/local_operand.h"

static void
check_sides(
    const struct local_operand *o, const struct constraint *c, const char *kind, struct problems *p)
{
	struct err e = { 0 };

	if (o->needs & NEEDS_LEFT && !*str(c->l_target))
		model_problem(p, "%s: operator \"%s\" needs an attribute", kind, o->word);
	if (o->needs & NEEDS_RIGHT && !*str(c->r_target))
		model_problem(p, "%s: operator \"%s\" needs a value", kind, o->word);
	if (o->needs & NO_RIGHT && *str(c->r_target))
		model_problem(p, "%s: operator \"%s\" takes no value", kind, o->word);
	if (o->check && o->check(str(c->r_target), &e) < 0)
		model_problem(p, "%s: operator \"%s\": %s", kind, o->word, e.msg);
	if (strncmp(str(c->l_target), "${device.", 9) == 0)
		model_problem(p,
		    "%s: \"%.80s\" is an attribute of devices, which are not supported", kind,
		    c->l_target);
}

static void
check_constraints(const struct constraint *v, size_t n, bool task, struct problems *p)
{
	for (size_t i = 0; i < n; i++) {
		const struct local_operand *o = local_operand_find(str(v[i].operand));

		if (!o)
			model_problem(
			    p, "constraint: there is no operator \"%.40s\"", v[i].operand);
		else if (task && o->needs & OF_PEERS)
			model_problem(p,
			    "constraint: operator \"%s\" is for a job or a group, not for a task",
			    o->word);
		else
			check_sides(o, &v[i], "constraint", p);
	}
}

static const char *
member_text(const json_t *object, const char *name)
{
	return json_string_value(json_object_get(object, name)) ?: "";
}

static void
check_affinities(const json_t *list, struct problems *p)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		const struct local_operand *o = local_operand_find(member_text(one, "Operand"));
		json_int_t weight = json_integer_value(json_object_get(one, "Weight"));
		/* check_sides() only reads them. */
		struct constraint c = { .l_target = (char *)(uintptr_t)member_text(one, "LTarget"),
			.r_target = (char *)(uintptr_t)member_text(one, "RTarget") };

		if (!o || o->needs & (OF_PEERS | NOT_AFFINITY))
			model_problem(p, "affinity: there is no operator \"%.40s\"",
			    member_text(one, "Operand"));
		else
			check_sides(o, &c, "affinity", p);
		if (weight == 0 || weight < -100 || weight > 100)
			model_problem(p, "affinity: weight must be from -100 to 100, and not 0");
	}
}

static void
check_targets(const json_t *targets, struct problems *p)
{
	json_int_t sum = 0;
	const json_t *one, *other;
	size_t i, k;

	json_array_foreach (targets, i, one) {
		json_int_t percent = json_integer_value(json_object_get(one, "Percent"));

		if (percent < 0 || percent > 100)
			model_problem(p, "spread: target \"%.80s\": percent must be from 0 to 100",
			    member_text(one, "Value"));
		else
			sum += percent;
		json_array_foreach (targets, k, other)
			if (k < i &&
			    strcmp(member_text(one, "Value"), member_text(other, "Value")) == 0)
				model_problem(p, "spread: target \"%.80s\" is given twice",
				    member_text(one, "Value"));
	}
	if (sum > 100)
		model_problem(p, "spread: the percentages of all targets are more than 100");
}

static void
check_spreads(const json_t *list, struct problems *p)
{
	const json_t *one;
	size_t i;

	json_array_foreach (list, i, one) {
		json_int_t weight = json_integer_value(json_object_get(one, "Weight"));

		if (*member_text(one, "Attribute") == '\0')
			model_problem(p, "spread: the attribute is missing");
		if (weight < 1 || weight > 100)
			model_problem(p, "spread: weight must be from 1 to 100");
		check_targets(json_object_get(one, "SpreadTarget"), p);
	}
}

static void
check_group(const struct task_group *g, struct problems *p)
{
	char name[160];
	struct place here = { .up = p->place, .name = name };

	check_constraints(g->constraints.v, g->constraints.n, false, p);
	check_affinities(g->affinities, p);
	check_spreads(g->spreads, p);
	for (size_t i = 0; i < g->tasks.n; i++) {
		const struct task *t = &g->tasks.v[i];

		(void)snprintf(name, sizeof name, "task \"%s\"", str(t->name));
		p->place = &here;
		check_constraints(t->constraints.v, t->constraints.n, true, p);
		check_affinities(t->affinities, p);
		p->place = here.up;
	}
}

void
local_constraint_validate(const struct job *job, struct problems *p)
{
	char name[160];
	struct place here = { .up = p->place, .name = name };

	check_constraints(job->constraints.v, job->constraints.n, false, p);
	check_affinities(job->affinities, p);
	check_spreads(job->spreads, p);
	for (size_t i = 0; i < job->task_groups.n; i++) {
		(void)snprintf(name, sizeof name, "group \"%s\"", str(job->task_groups.v[i].name));
		p->place = &here;
		check_group(&job->task_groups.v[i], p);
		p->place = here.up;
	}
}
