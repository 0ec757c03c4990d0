// SPDX-License-Identifier: Apache-2.0
/* local_services.c: the registered services. Runs in: supervisor. */
#include "supervisor/server/claim/local_services.h"

#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"

struct local_service {
	struct source_service base;
	struct local_news news;
};

struct local_services {
	struct service_table table;
};

void
local_services_init(struct local *l)
{
	l->services = mem_new(struct local_services);
}

const struct service_table *
local_services_table(const struct local *l)
{
	return &l->services->table;
}

static const struct service_registration *
registration_of(const struct local_news *n)
{
	return &container_of(n, struct local_service, news)->base.reg;
}

static void
get_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	const struct service_registration *reg = registration_of(n);

	*ret = (struct event_head){ .topic = "Service",
		.type = "ServiceRegistration",
		.namespace = reg->namespace,
		.keys = { reg->id, reg->job_id, reg->service_name } };
}

static void
print_event(struct local *l, const struct local_news *n, struct text *t)
{
	model_to_text(&service_registration_type, registration_of(n), 0, t);
}

static const struct local_news_type service_news = { "Service", get_head, print_event };

static struct local_news *
news_of(struct source_service *s)
{
	return &container_of(s, struct local_service, base)->news;
}

static void
record_change(struct local *l, struct source_service *s)
{
	uint64_t index = s->reg.modify_index;

	local_changes_record(l, LOCAL_SERVICES, index);
	local_changes_put(l, news_of(s), &service_news, index);
}

void
local_service_remove(struct local *l, struct source_service *s)
{
	uint64_t index = local_index_next(l);

	local_event_keep(l, news_of(s), &service_news, "ServiceDeregistration", index);
	local_changes_record(l, LOCAL_SERVICES, index);
	service_table_remove(&l->services->table, s);
}

static void
put_service(struct local *l, struct sup_alloc *sa, const char *workload,
    const struct service_registration *reg)
{
	struct source_service *s = service_table_find(sa, reg->id);
	struct service_registration copy;

	if (s && model_equal(&service_registration_type, &s->reg, reg))
		return;
	service_registration_copy(reg, &copy);
	copy.create_index = copy.modify_index = local_index_next(l);
	if (s) {
		copy.create_index = s->reg.create_index;
		service_registration_done(&s->reg);
		s->reg = copy;
	} else {
		s = service_table_add(
		    &l->services->table, sizeof(struct local_service), sa, workload, &copy);
		service_registration_done(&copy);
	}
	record_change(l, s);
}

void
local_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n)
{
	struct local *l = local_of(source);
	struct source_service *next;

	for (struct source_service *s = sa->services; s; s = next) {
		next = s->next_of_alloc;
		if (service_is_replaced(s, workload, v, n))
			local_service_remove(l, s);
	}
	for (size_t i = 0; i < n; i++)
		put_service(l, sa, workload, &v[i]);
}

void
local_services_free(struct local *l)
{
	struct source_service *s;

	while ((s = l->services->table.first)) {
		local_changes_remove(l, news_of(s));
		service_table_remove(&l->services->table, s);
	}
	free(l->services);
}
