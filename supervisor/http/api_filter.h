/* SPDX-License-Identifier: Apache-2.0 */
/*
 * api_filter.h: what ?filter= of a list means: Status == "running" and Meta["tier"] is not empty.
 * Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HTTP_API_FILTER_H
#define DROVER_SUPERVISOR_HTTP_API_FILTER_H

#include <jansson.h>
#include <stdbool.h>

#include "common/cleanup.h"
#include "common/err.h"

#define API_FILTER_MAX 4096 /* bytes of one expression */

struct api_filter;

/* -EINVAL with *e: it is no expression, and where; -ENOMEM. The caller frees *ret. */
int api_filter_parse(const char *text, struct api_filter **ret, struct err *e);
void api_filter_free(struct api_filter *f);
DEFINE_CLEANUP(struct api_filter *, api_filter_free);

/* Does it look at this member of an object, or into it? */
bool api_filter_asks(const struct api_filter *f, const char *field);
/*
 * Does this JSON object fit? 1 or 0; -EINVAL with *e: it asks for a field that the object cannot
 * have, compares one with what it cannot be, or has taken too long by now; -EBUSY with *e: the
 * filters of all requests together have; -ENOMEM.
 */
int api_filter_match(struct api_filter *f, const json_t *object, struct err *e);

#endif
