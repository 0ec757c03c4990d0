/* SPDX-License-Identifier: Apache-2.0 */
/* parts.h: counts the elements and texts that an object consists of. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ENGINE_PARTS_H
#define DROVER_MODEL_ENGINE_PARTS_H

#include "model/engine/field.h"

/* The largest of a kind, and the JSON name of its field ("" if it is 0). */
struct part {
	size_t size;
	const char *name;
};

struct parts {
	size_t n;         /* elements of all lists, at any depth */
	size_t bytes;     /* of all texts that are members or elements */
	struct part list; /* the longest whose elements are compared in pairs, in elements */
	struct part text; /* the longest that is a member, in bytes */
};

/*
 * Counts elements of lists of strings, numbers and structs, entries of maps of structs, and
 * elements of the lists in raw JSON; texts of fields and of lists of strings. Maps from string to
 * string, texts in raw JSON and payloads do not count: nothing makes several copies of them.
 */
struct parts model_parts(const struct type *type, const void *obj);

#endif
