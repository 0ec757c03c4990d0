/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_view.h: an alloc as the API shows it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_ALLOC_VIEW_H
#define DROVER_SUPERVISOR_API_ALLOC_VIEW_H

#include "model/alloc.h"
#include "supervisor/http/api_list.h"
#include "supervisor/table/alloc_table.h"

/*
 * Shares everything with *sa but what the API adds: the job, which the table keeps apart, and the
 * sums that clients of the API take for given, where the source has not made them. A task's tokens
 * are its own and are left out. 0 or -ENOMEM, and then alloc_view_done() is still due.
 */
int alloc_view_init(struct alloc *view, const struct sup_alloc *sa);
void alloc_view_done(struct alloc *view);

/* The alloc whose id is the first ":" of the request's pattern; NULL: there is none. */
struct sup_alloc *api_alloc(const struct api_req *req);
/* Its stub: with ?resources=true with its resources, with ?task_states=false without task states.
 */
void api_list_add_alloc(struct api_list *list, struct sup_alloc *sa);

#endif
