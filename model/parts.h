/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h: counts the elements of the lists and maps that an object consists of. Runs in:
 * supervisor, cli. */
#ifndef DROVER_MODEL_PARTS_H
#define DROVER_MODEL_PARTS_H

#include "model/field.h"

struct parts {
	size_t n;            /* elements of all lists, at any depth */
	size_t longest;      /* elements of the longest list whose elements are compared in pairs */
	const char *of_name; /* the JSON name of that list; "" if longest is 0 */
};

/*
 * Counts elements of lists of strings, numbers and structs, entries of maps of structs, and
 * elements of the lists in raw JSON. Maps from string to string do not count: nothing takes longer
 * than their size for them.
 */
struct parts model_parts(const struct type *type, const void *obj);

#endif
