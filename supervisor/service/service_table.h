/* SPDX-License-Identifier: Apache-2.0 */
/* service_table.h: the services that a source has registered: in one list, and by alloc. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_SERVICE_TABLE_H
#define DROVER_SUPERVISOR_SERVICE_SERVICE_TABLE_H

#include "model/service.h"
#include "supervisor/table/alloc_table.h"

/* The first member of what a source keeps of one. */
struct source_service {
	struct source_service *prev, *next; /* all */
	struct source_service *next_of_alloc;
	struct sup_alloc *sa; /* NULL: it is no more, but somebody has to be told */
	char *workload;
	struct service_registration reg;
};

struct service_table {
	struct source_service *first;
	size_t n;
};

/* Makes one of size bytes, zero behind its struct source_service. Takes what *reg holds. sa may be
 * NULL. NULL: no memory. */
struct source_service *service_table_add(struct service_table *t, size_t size, struct sup_alloc *sa,
    const char *workload, struct service_registration *reg);
struct source_service *service_table_find(const struct sup_alloc *sa, const char *id);
/* It stays in the table, without its alloc. */
void service_table_detach(struct source_service *s);
void service_table_remove(struct service_table *t, struct source_service *s); /* and frees it */
void service_table_move(
    struct service_table *from, struct service_table *to, struct source_service *s);
/* Would services_set() of this workload (NULL: any) and these take it away? */
bool service_is_replaced(const struct source_service *s, const char *workload,
    const struct service_registration *v, size_t n);

#endif
