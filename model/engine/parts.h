/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h: counts the list elements and texts of an object, to limit its size. Runs in: supervisor,
 * cli. */
#ifndef DROVER_MODEL_ENGINE_PARTS_H
#define DROVER_MODEL_ENGINE_PARTS_H

#include "model/engine/field.h"

/* The largest of a kind, and the JSON name of its field ("" if n is 0). */
struct part {
	size_t size;
	const char *name;
};

struct parts {
	size_t n;         /* elements of all lists at any depth */
	size_t bytes;     /* bytes of all texts that are members or elements */
	struct part list; /* the list with the most elements among those compared in pairs */
	struct part text; /* the longest text that is a member without FIELD_LONG, in bytes */
};

/*
 * Counts elements of lists of strings, numbers and structs, entries of maps of structs, and
 * elements of lists in raw JSON; and texts that are fields or in lists of strings. Maps from string
 * to string, texts in raw JSON and payloads do not count, because they are not copied several
 * times.
 */
struct parts model_parts(const struct type *type, const void *obj);

#endif
