/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_path.h: paths of the functions about files. Runs in: cli, job-parser. */
#ifndef DROVER_HCL_HCL_PATH_H
#define DROVER_HCL_HCL_PATH_H

#include "hcl/hcl_eval.h"

struct hcl_items;

/* The directory where relative paths begin. Refuses the call if files are not allowed, or if an
 * argument is no path. */
const char *hcl_base_dir(struct hcl_call *c);
/* The path with a home directory in place of "~" at its beginning. */
const char *hcl_path_expand(struct hcl_call *c, const char *path);

/* Paths as text, without looking at files: the shortest with the same meaning; two joined; and a
 * clean path relative to a clean directory, or NULL if there is none that is known (from ".."). */
const char *hcl_path_clean(struct hcl *h, const char *path);
const char *hcl_path_join(struct hcl *h, const char *base, const char *path);
const char *hcl_path_relative(struct hcl *h, const char *base, const char *path);

/* Adds the paths of all files that match the pattern (hcl_func_glob.c); some may be added twice. */
void hcl_glob(struct hcl_call *c, const char *pattern, struct hcl_items *ret);

#endif
