/* SPDX-License-Identifier: Apache-2.0 */
/* service_table.h: the services that a source has registered: all in one list, and each alloc's in
 * another. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICE_TABLE_H
#define DROVER_SUPERVISOR_SERVICE_SERVICE_TABLE_H

#include "common/list.h"
#include "model/service.h"
#include "supervisor/table/alloc_table.h"

/* The first member of a source's own struct for a service. */
struct source_service {
	LIST_ENTRY(source_service) link;       /* in its table */
	LIST_ENTRY(source_service) alloc_link; /* in sa->services */
	struct sup_alloc *sa; /* NULL: it has ended, but the service must still be deregistered */
	char *workload;
	struct service_registration reg;
};

/* Zero is an empty table. */
struct service_table {
	LIST_HEAD(, source_service) list; /* newest first */
	size_t n;
};

/* Adds an object of size bytes, which is zero after its struct source_service. Takes over the
 * contents of *reg. sa may be NULL. */
struct source_service *service_table_add(struct service_table *t, size_t size, struct sup_alloc *sa,
    const char *workload, struct service_registration *reg);
struct source_service *service_table_find(const struct sup_alloc *sa, const char *id);
/* Removes the service from its alloc's list; it stays in the table. */
void service_table_detach(struct source_service *s);
/* Removes the service and frees it. */
void service_table_remove(struct service_table *t, struct source_service *s);
void service_table_move(
    struct service_table *from, struct service_table *to, struct source_service *s);
/* Returns true if services_set() of this workload (NULL: any) with these services removes s. */
bool service_is_replaced(const struct source_service *s, const char *workload,
    const struct service_registration *v, size_t n);

#endif
