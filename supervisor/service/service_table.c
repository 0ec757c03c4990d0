// SPDX-License-Identifier: Apache-2.0
/* service_table.c: the services that a source has registered. Runs in: supervisor. */
#include "supervisor/service/service_table.h"

#include <stdlib.h>

#include "common/mem.h"

struct source_service *
service_table_add(struct service_table *t, size_t size, struct sup_alloc *sa, const char *workload,
    struct service_registration *reg)
{
	struct source_service *s = mem_zeroed(1, size);

	s->workload = mem_strdup(workload);
	s->reg = *reg;
	service_registration_init(reg);
	s->sa = sa;
	if (sa)
		LIST_INSERT_HEAD(&sa->services, s, alloc_link);
	LIST_INSERT_HEAD(&t->list, s, link);
	t->n++;
	return s;
}

struct source_service *
service_table_find(const struct sup_alloc *sa, const char *id)
{
	struct source_service *s;

	LIST_FOREACH (s, &sa->services, alloc_link)
		if (str_eq(s->reg.id, id))
			return s;
	return NULL;
}

void
service_table_detach(struct source_service *s)
{
	if (!s->sa)
		return;
	LIST_REMOVE(s, alloc_link);
	s->sa = NULL;
}

void
service_table_remove(struct service_table *t, struct source_service *s)
{
	service_table_detach(s);
	LIST_REMOVE(s, link);
	t->n--;
	service_registration_done(&s->reg);
	free(s->workload);
	free(s);
}

void
service_table_move(struct service_table *from, struct service_table *to, struct source_service *s)
{
	LIST_REMOVE(s, link);
	from->n--;
	LIST_INSERT_HEAD(&to->list, s, link);
	to->n++;
}

bool
service_is_replaced(const struct source_service *s, const char *workload,
    const struct service_registration *v, size_t n)
{
	if (workload && !str_eq(s->workload, workload))
		return false;
	for (size_t i = 0; i < n; i++)
		if (str_eq(v[i].id, s->reg.id))
			return false;
	return true;
}
