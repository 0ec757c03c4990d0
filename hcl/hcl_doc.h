/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_doc.h: the inside of a document, for the files of this library. Runs in: cli, job-parser,
 * supervisor (ACL policies), the launcher's configuration child. */
#ifndef DROVER_HCL_HCL_DOC_H
#define DROVER_HCL_HCL_DOC_H

#include "common/list.h"
#include "hcl/hcl.h"
#include "lang/arena.h"

struct hcl {
	struct hcl_limits limits;
	struct arena arena;
	unsigned depth;
	struct hcl_range busy_at; /* the expression that is evaluated, for limits */
	struct hcl_problem *problems, **last_problem;
	unsigned n_problems, n_errors;
};

/* The document of an arena. */
static inline struct hcl *
hcl_of_arena(struct arena *a)
{
	return container_of(a, struct hcl, arena);
}

/* Begin and end a level of nesting, in parsing and in evaluation. hcl_try() restores the depth. */
void hcl_enter(struct hcl *h, struct hcl_range at);
void hcl_exit(struct hcl *h);

#endif
