/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_normal.h: strings in the normal form of values. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_NORMAL_H
#define DROVER_HCL_HCL_NORMAL_H

#include "hcl/hcl_value.h"
#include "lang/text.h"

/* The string in Unicode's normal form C, as all strings of go-cty are. */
struct hcl_value *hcl_normal_string(struct hcl *h, const char *s, size_t len);
/* The string with this text in that form; takes the text over. */
struct hcl_value *hcl_text_value(struct text *t);

#endif
