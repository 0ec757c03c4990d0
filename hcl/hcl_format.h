/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_format.h: the canonical format of a text, as `nomad fmt` writes it. Runs in: cli, job-parser.
 */
#ifndef DROVER_HCL_HCL_FORMAT_H
#define DROVER_HCL_HCL_FORMAT_H

#include "hcl/hcl.h"

/* Returns the text with canonical spaces, in the arena; only spaces change. NULL: the text is no
 * HCL, and h has the problems. */
char *hcl_format(struct hcl *h, const struct hcl_source *source, size_t *ret_len);

#endif
