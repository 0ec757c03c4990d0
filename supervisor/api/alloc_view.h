/* SPDX-License-Identifier: Apache-2.0 */
/* alloc_view.h: builds the API's view of an alloc. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_ALLOC_VIEW_H
#define DROVER_SUPERVISOR_API_ALLOC_VIEW_H

#include "model/alloc.h"
#include "supervisor/http/api_list.h"
#include "supervisor/table/alloc_table.h"

/* Builds a view that shares memory with *sa and adds the job, which the table keeps apart, and
 * resource sums that clients expect, unless the source has set them. The tokens of tasks are left
 * out. The caller frees the view with alloc_view_done(). */
void alloc_view_init(struct alloc *view, const struct sup_alloc *sa);
void alloc_view_done(struct alloc *view);

/* Finds the alloc whose id is the first parameter of the request's path; NULL if it does not exist.
 */
struct sup_alloc *api_alloc(const struct api_req *req);
/* Adds the alloc's stub; ?resources=true adds its resources, ?task_states=false omits task states.
 */
void api_list_add_alloc(struct api_list *list, struct sup_alloc *sa);

#endif
