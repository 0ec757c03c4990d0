/* SPDX-License-Identifier: Apache-2.0 */
/* seal_texts.h: seals lists of texts: secrets and other maps of an object, in a column of its row.
 * Each text is stored with its NUL. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SEAL_TEXTS_H
#define DROVER_SUPERVISOR_CORE_SEAL_TEXTS_H

#include <stdbool.h>

#include "supervisor/core/seal.h"

struct string_map;

struct seal_texts {
	char *at; /* NULL: only the size is counted */
	size_t len;
};

/* Adds the texts of obj with the two functions below. It is called twice. */
typedef void seal_put_fn(struct seal_texts *texts, const void *obj);
void seal_put_text(struct seal_texts *texts, const char *text);
void seal_put_map(struct seal_texts *texts, const struct string_map *map);

/* Seals what put() adds; *ret stays empty if that is nothing. Returns 0 or -errno. */
int seal_close_texts(struct seal *seal, const char *about, seal_put_fn *put, const void *obj,
    struct sealed *ret, struct err *e);

/* Gives the texts back to obj. */
typedef void seal_take_fn(void *obj, const char *at, size_t left);
/* Returns the next text of *at, of which *left bytes exist; NULL if there is none. */
const char *seal_take_text(const char **at, size_t *left);
/* Appends the rest, key by key, to map. */
void seal_take_map(const char **at, size_t *left, struct string_map *map);

/* Opens what seal_close_texts() made. Returns false if it cannot be opened (seal_open()). */
bool seal_open_texts(const struct seal *seal, const char *about, const void *bytes, size_t len,
    seal_take_fn *take, void *obj);

#endif
