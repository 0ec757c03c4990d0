// SPDX-License-Identifier: Apache-2.0
/* services.c: registers the services of allocs at the source. Runs in: supervisor. */
#include "supervisor/service/services.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "supervisor/node/node_state.h"
#include "supervisor/service/service_place.h"
#include "supervisor/service/service_text.h"
#include "supervisor/source/source.h"

struct regs {
	MODEL_LIST(struct service_registration) list;
};

static void
regs_done(struct regs *r)
{
	for (size_t i = 0; i < r->list.n; i++)
		service_registration_done(&r->list.v[i]);
	free(r->list.v);
}

static void
fill_tags(const struct service *s, const struct alloc *a, struct service_registration *reg)
{
	const struct strings *tags = &s->tags;

	if (a->deployment_status && a->deployment_status->canary && s->canary_tags.n > 0)
		tags = &s->canary_tags;
	for (size_t i = 0; i < tags->n; i++)
		strings_add(&reg->tags, str(tags->v[i]));
}

static int
fill_reg(struct sup *sup, const struct sup_alloc *sa, const struct task *task, const char *workload,
    const struct service *s, struct service_registration *reg, struct err *e)
{
	const struct service_place place = { task, s->address, s->address_mode, s->port_label };
	const struct node *node = node_get(sup);
	struct err why = { 0 };
	int r = service_place_resolve(sup, &sa->a, &place, &reg->address, &reg->port, &why);

	if (r < 0)
		return err_say(e, r, "service \"%s\": %s", str(s->name), why.msg);
	str_setf(&reg->id, "_nomad-task-%s-%s-%s-%s", sa->a.id, workload, str(s->name),
	    str(s->port_label));
	str_set(&reg->service_name, s->name);
	str_set(&reg->namespace, sa->job->job.namespace);
	str_set(&reg->node_id, node->id);
	str_set(&reg->datacenter, node->datacenter);
	str_set(&reg->job_id, sa->job->job.id);
	str_set(&reg->alloc_id, sa->a.id);
	fill_tags(s, &sa->a, reg);
	return 0;
}

static int
make_regs(struct sup *sup, const struct sup_alloc *sa, const struct task *task, struct regs *ret,
    struct err *e)
{
	cleanup_services struct service_list list;
	char workload[WORKLOAD_SIZE];
	int r = service_list_make(sup, sa, task, &list, e);

	service_workload(sa, task, workload);
	for (size_t i = 0; i < list.services.n && r == 0; i++) {
		struct service_registration *reg = list_add(service_registration, &ret->list);

		r = fill_reg(sup, sa, task, workload, &list.services.v[i], reg, e);
	}
	return r;
}

int
services_up(struct sup *sup, struct sup_alloc *sa, const struct task *task, struct err *e)
{
	__attribute__((__cleanup__(regs_done))) struct regs regs = { 0 };
	struct source *source = sup->source;
	char workload[WORKLOAD_SIZE];
	int r = make_regs(sup, sa, task, &regs, e);

	if (r < 0)
		return r;
	service_workload(sa, task, workload);
	if (regs.list.n > 0 || !LIST_EMPTY(&sa->services))
		source->ops->services_set(source, sa, workload, regs.list.v, regs.list.n);
	return 0;
}

void
services_down(struct sup *sup, struct sup_alloc *sa, const struct task *task)
{
	char workload[WORKLOAD_SIZE];

	service_workload(sa, task, workload);
	if (!LIST_EMPTY(&sa->services))
		sup->source->ops->services_set(sup->source, sa, workload, NULL, 0);
}

void
services_all_down(struct sup *sup, struct sup_alloc *sa)
{
	if (!LIST_EMPTY(&sa->services))
		sup->source->ops->services_set(sup->source, sa, NULL, NULL, 0);
}
