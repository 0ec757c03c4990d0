/* SPDX-License-Identifier: Apache-2.0 */
/* walk.h: how the engine goes through an object by its table: positions, lists, times, encoding.
 * Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_ENGINE_WALK_H
#define DROVER_MODEL_ENGINE_WALK_H

#include "model/engine/table.h"

/* The common form of all lists and maps. */
struct any_list {
	char *v;
	size_t n;
};

static inline void *
field_at(const struct field *f, const void *obj)
{
	return (char *)obj + f->offset;
}

static inline size_t
map_entry_size(const struct type *item)
{
	return MAP_VALUE_OFFSET + item->size;
}

/*
 * A list does not store its capacity: it follows from n (the next even number, from 16 on the next
 * power of two). Every function that makes a list must allocate it with these.
 */
void list_grow(void *list, size_t item_size); /* for one more element */
void *list_alloc(size_t n, size_t item_size); /* for n elements, zeroed */

/* text_room() returns a buffer for at most `more` bytes at the end of the text; text_end() sets the
 * end of the bytes that were written. */
char *text_room(struct text *t, size_t more);
void text_end(struct text *t, char *end);

/* Finds the field for a key of JSON: exactly, else ignoring case. NULL: there is none. Keys mostly
 * come in the table's order, so the search starts at *next, which is moved behind the field. */
const struct field *field_find(const struct type *type, const char *key, size_t len, size_t *next);

/* Frees the contents of a field and resets it as model_init() does. */
void field_done(const struct field *f, void *obj);
/* Exchanges the contents of a field in two objects. */
void field_swap(const struct field *f, void *a, void *b);
bool field_is_empty(const struct field *f, const void *obj); /* is as after model_init() */

/* The position of decoding or validation, as a list up the call stack. */
struct place {
	const struct place *up;
	const char *name; /* NULL: use the index */
	bool key;         /* name is the key of a map */
	size_t index;
	bool sealed; /* a field with FIELD_SEALED: errors do not say what was found in it */
};

/* Writes "TaskGroups[0].Meta["x"]"; "" for NULL. */
void place_format(const struct place *p, char *ret, size_t size);
bool place_is_sealed(const struct place *p); /* or is in one that is */

/* Prints RFC 3339 in UTC with as many fraction digits as needed. */
#define RFC3339_SIZE 40
void time_format(int64_t ns, char ret[RFC3339_SIZE]);
/* Parses RFC 3339; false for an invalid time or one out of range. Year 1 (Go's zero) gives 0. */
bool time_parse(const char *text, int64_t *ret_ns);

/* Times in msgpack, in UTC; 0 is Go's zero. go_time_parse() returns false for an invalid time. */
#define GO_TIME_SIZE 15
void go_time_format(int64_t ns, uint8_t ret[GO_TIME_SIZE]);
bool go_time_parse(const void *data, size_t len, int64_t *ret_ns);

/* Receives encoded values, as JSON text or msgpack. */
struct sink {
	bool json; /* use JSON's names and visibility, not msgpack's */
	void (*null)(void *arg);
	void (*boolean)(void *arg, bool b);
	void (*integer)(void *arg, int64_t n);
	void (*uinteger)(
	    void *arg, uint64_t n); /* NULL: use integer(), or text() for large numbers */
	void (*real)(void *arg, double d);
	void (*string)(void *arg, const char *s, size_t len);
	void (*time)(void *arg, int64_t ns);          /* a time of 0 reaches this only in msgpack */
	void (*bytes)(void *arg, const char *base64); /* NULL: use text() */
	void (*raw)(void *arg, const void *data, size_t len); /* encoded already. May be NULL */
	void (*open)(void *arg, bool map, size_t n);          /* n is set only if `counts` */
	void (*close)(void *arg, bool map);
	void (*key)(void *arg, const char *s, size_t len, bool plain); /* plain: needs no escapes */
	bool counts;
};

/* As model_difference(), ignoring fields that have one of these flags. ret may be NULL. */
bool model_differs(
    const struct type *type, const void *a, const void *b, unsigned ignore, char *ret, size_t size);

void model_walk(const struct type *type, const void *obj, enum model_flags flags,
    const struct sink *sink, void *arg);

#endif
