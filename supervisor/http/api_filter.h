/* SPDX-License-Identifier: Apache-2.0 */
/* api_filter.h: evaluates ?filter= of a list: Status == "running" and Meta["tier"] is not empty.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_FILTER_H
#define DROVER_SUPERVISOR_HTTP_API_FILTER_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"

#define API_FILTER_MAX 4096 /* longest expression, bytes */

struct api_filter;

/* The CPU time that filters share: they may use a part of the time that passes. A zeroed one is
 * valid. */
struct filter_budget {
	int64_t saved_ns;  /* CPU time that may still be used */
	uint64_t since_ms; /* when it was last increased */
};

/* Parses an expression. -EINVAL with *e, which names the position of the error. The caller frees
 * *ret. The budget must outlive it. */
int api_filter_parse(
    const char *text, struct filter_budget *budget, struct api_filter **ret, struct err *e);
void api_filter_free(struct api_filter *f);
DEFINE_CLEANUP(struct api_filter *, api_filter_free);

/* Returns true if the expression refers to this member of an object. */
bool api_filter_refers_to(const struct api_filter *f, const char *field);
/* Evaluates the expression on a JSON object. Returns 1 or 0; -EINVAL with *e if it refers to an
 * unknown field, compares incompatible types, or took too long; -EBUSY with *e if the filters that
 * share its budget together took too long. */
int api_filter_match(struct api_filter *f, const json_t *object, struct err *e);

#endif
