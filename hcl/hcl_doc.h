/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_doc.h: the inside of a document, for the files of this library. Runs in: cli, job-parser,
 * supervisor (ACL policies), the launcher's configuration child. */
#ifndef DROVER_HCL_HCL_DOC_H
#define DROVER_HCL_HCL_DOC_H

#include <setjmp.h>

#include "hcl/hcl.h"

struct chunk;

struct hcl {
	struct hcl_limits limits;
	struct chunk *chunks; /* the first has the free space */
	char *large;          /* the object for which a chunk of its own was just made */
	size_t memory;
	uint64_t steps;
	unsigned depth;
	struct hcl_range busy_at; /* the expression that is evaluated, for limits */
	bool exhausted;           /* a limit was exceeded: nothing more is evaluated */
	jmp_buf *guard;           /* of the innermost hcl_try() */
	struct hcl_problem *problems, **last_problem;
	unsigned n_problems, n_errors;
};

/* Begin and end a level of nesting, in parsing and in evaluation. hcl_try() restores the depth. */
void hcl_enter(struct hcl *h, struct hcl_range at);
void hcl_exit(struct hcl *h);

#endif
