/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_text.h: a text that grows in the arena. Runs in: cli, job-parser, supervisor (ACL policies),
 * the launcher's configuration child. */
#ifndef DROVER_HCL_HCL_TEXT_H
#define DROVER_HCL_HCL_TEXT_H

#include "hcl/hcl_value.h"

/* Starts as { .h = h }. text has a NUL after its len bytes; it is NULL before the first addition.
 */
struct hcl_text {
	struct hcl *h;
	char *text;
	size_t len, size;
};

void hcl_text_bytes(struct hcl_text *t, const char *bytes, size_t n);
void hcl_text_add(struct hcl_text *t, const char *s);

#endif
