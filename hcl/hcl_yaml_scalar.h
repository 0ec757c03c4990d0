/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_yaml_scalar.h: what a scalar of YAML means. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_YAML_SCALAR_H
#define DROVER_HCL_HCL_YAML_SCALAR_H

#include "hcl/hcl_func.h"
#include "lang/yaml_read.h"

/* Resolves a scalar with its tag ("" if it has none) as go-cty-yaml does. quoted: in single or
 * double quotes. Returns NULL and a sentence if it does not fit its tag. */
struct hcl_value *hcl_yaml_scalar(
    struct hcl *h, const char *tag, const char *s, size_t len, bool quoted, const char **ret_why);

#endif
