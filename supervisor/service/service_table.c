// SPDX-License-Identifier: Apache-2.0
/* service_table.c: what a source keeps of registered services. Runs in: supervisor. */
#include "supervisor/service/service_table.h"

#include <stdlib.h>

static void
put_first(struct service_table *t, struct source_service *s)
{
	s->prev = NULL;
	s->next = t->first;
	if (t->first)
		t->first->prev = s;
	t->first = s;
	t->n++;
}

static void
take_out(struct service_table *t, struct source_service *s)
{
	*(s->prev ? &s->prev->next : &t->first) = s->next;
	if (s->next)
		s->next->prev = s->prev;
	t->n--;
}

struct source_service *
service_table_add(struct service_table *t, size_t size, struct sup_alloc *sa, const char *workload,
    struct service_registration *reg)
{
	struct source_service *s = calloc(1, size);

	if (!s || str_set(&s->workload, workload) < 0) {
		free(s);
		return NULL;
	}
	s->reg = *reg;
	service_registration_init(reg);
	s->sa = sa;
	if (sa) {
		s->next_of_alloc = sa->services;
		sa->services = s;
	}
	put_first(t, s);
	return s;
}

struct source_service *
service_table_find(const struct sup_alloc *sa, const char *id)
{
	struct source_service *s = sa->services;

	while (s && !str_eq(s->reg.id, id))
		s = s->next_of_alloc;
	return s;
}

void
service_table_detach(struct source_service *s)
{
	struct source_service **at;

	if (!s->sa)
		return;
	for (at = &s->sa->services; *at != s;)
		at = &(*at)->next_of_alloc;
	*at = s->next_of_alloc;
	s->sa = NULL;
}

void
service_table_remove(struct service_table *t, struct source_service *s)
{
	service_table_detach(s);
	take_out(t, s);
	service_registration_done(&s->reg);
	free(s->workload);
	free(s);
}

void
service_table_move(struct service_table *from, struct service_table *to, struct source_service *s)
{
	take_out(from, s);
	put_first(to, s);
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
