// SPDX-License-Identifier: Apache-2.0
/* job_locals.c: the locals of a job file. Runs in: cli, job-parser. */
#include <string.h>

#include "jobspec/job_block.h"

struct job_local {
	const char *name;
	const struct hcl_attr *attr;
	struct hcl_value *value;
	STAILQ_ENTRY(job_local) entry;
};

void
job_locals_add(struct hcl *h, struct job_locals *locals, const struct hcl_block *b)
{
	if (b->body->blocks)
		hcl_fail(h, b->body->blocks->type_at,
		    "a locals block has no blocks inside: write %s = { … }", b->body->blocks->type);
	for (const struct hcl_attr *a = b->body->attrs; a; a = a->next) {
		struct job_local *l;

		STAILQ_FOREACH (l, &locals->list, entry)
			if (strcmp(l->name, a->name) == 0)
				hcl_fail(h, a->name_at, "local \"%s\" is set twice", a->name);
		l = hcl_new_object(h, struct job_local);
		l->name = a->name;
		l->attr = a;
		STAILQ_INSERT_TAIL(&locals->list, l, entry);
		locals->n++;
	}
}

static struct hcl_value *
locals_value(struct hcl *h, const struct job_locals *locals)
{
	struct hcl_member *members = hcl_alloc(h, locals->n * sizeof *members);
	const struct job_local *l;
	size_t n = 0;

	STAILQ_FOREACH (l, &locals->list, entry)
		if (l->value)
			members[n++] = (struct hcl_member){ l->name, strlen(l->name), l->value };
	return hcl_object(h, members, n);
}

struct local_call {
	const struct hcl_scope *scope;
	struct job_local *l;
};

static void
evaluate_local(struct hcl *h, void *arg)
{
	struct local_call *c = arg;

	c->l->value = hcl_eval(h, c->l->attr->expr, c->scope);
}

/* Goes through the locals until one pass sets none: they may be in any order. */
struct hcl_value *
job_locals_evaluate(struct hcl *h, struct job_locals *locals, const struct hcl_scope *outermost,
    struct hcl_value *var)
{
	struct hcl_variable names[] = { { "var", var }, { "local", NULL } };
	struct hcl_scope scope = *outermost;
	unsigned before = hcl_problem_count(h);
	bool progress = true, left = true;
	struct job_local *l;

	scope.variables = names;
	scope.n = 2;
	while (progress && left) {
		progress = left = false;
		hcl_forget_problems(h, before);
		STAILQ_FOREACH (l, &locals->list, entry) {
			struct local_call c = { &scope, l };

			if (l->value)
				continue;
			names[1].value = locals_value(h, locals);
			if (hcl_try(h, evaluate_local, &c))
				progress = true;
			else
				left = true;
		}
	}
	if (left)
		hcl_leave(h);
	return locals_value(h, locals);
}
