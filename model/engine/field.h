/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h: a struct described once, by a table of its fields, and everything that follows from the
 * table: JSON in and out, defaults, validation, copy, comparison. Runs in: supervisor, cli.
 *
 * How members look. A string is a char * on the heap, NULL when it is empty (str() gives "").
 * Counts, sizes, indexes: int64_t or uint64_t. A duration is int64_t nanoseconds. A time is int64_t
 * nanoseconds since 1970 UTC, 0 = never. An enum is a C enum whose value 0 is the empty string.
 * Where "not given" differs from zero, an int64_t is MODEL_UNSET and a yes-or-no is an enum
 * opt_bool. Lists and maps are {v, n}: v NULL is Go's nil, v not NULL with n 0 is an empty one. A
 * block that this node only shows again is a json_t *.
 */
#ifndef DROVER_MODEL_ENGINE_FIELD_H
#define DROVER_MODEL_ENGINE_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"

#define MODEL_UNSET     INT64_MIN
#define MODEL_DEPTH_MAX 64

enum opt_bool { OPT_UNSET, OPT_FALSE, OPT_TRUE };

struct strings {
	char **v;
	size_t n;
};

struct ints {
	int64_t *v;
	size_t n;
};

struct string_pair {
	char *key, *value;
};

struct string_map {
	struct string_pair *v;
	size_t n;
};

struct int_pair {
	char *key;
	int64_t value;
};

struct int_map {
	struct int_pair *v;
	size_t n;
};

/* A list of structs; and a map from a string to structs, in the order in which its keys came. */
#define MODEL_LIST(item)                                                                           \
	struct {                                                                                   \
		item *v;                                                                           \
		size_t n;                                                                          \
	}
#define MODEL_MAP(item)                                                                            \
	struct {                                                                                   \
		struct {                                                                           \
			char *key;                                                                 \
			item value;                                                                \
		} * v;                                                                             \
		size_t n;                                                                          \
	}

struct field;
struct place;
struct problems;

struct type {
	const char *name; /* for messages: "group" */
	size_t size;
	const struct field *fields; /* table.h */
	size_t n;
	size_t
	    title; /* 1 + offset of the char * that tells one from another in messages; 0: none */
	bool bare; /* it looks like its only field's value: a list of lists, a map of lists */
	/* Says what is wrong with this struct by itself, with model_problem(). May be NULL. */
	void (*validate)(const void *obj, struct problems *p);
};

/* Sentences about what is wrong, in the order of the struct. */
struct problems {
	struct strings list;
	const struct place *place; /* where validation is just now */
};

/* 0, or -ENOMEM. Only the first 100 are kept. problems_err() makes one error of all: "a; b; c". 0
 * when there are none, else -EINVAL. */
int model_problem(struct problems *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
int problems_err(const struct problems *p, struct err *e);
void problems_done(struct problems *p);

/* Zero is a valid empty object for every type, except that fields which know "not given" are 0
 * instead of unset. */
void model_init(const struct type *type, void *obj); /* unset what can be unset, zero the rest */
void model_done(const struct type *type, void *obj); /* frees what it holds and inits again */
void *model_new(const struct type *type);            /* NULL: no memory */
void model_free(const struct type *type, void *obj);

/*
 * Decodes over an initialised object. Keys are matched as Go does: exactly, else ignoring case;
 * unknown ones are ignored; null leaves a field as it is. A duration may be a number of nanoseconds
 * or a text such as "30s". Returns 0; -EINVAL with `TaskGroups[0].Tasks[1].Resources.CPU: expected
 * a number, found "x"`; -ENOMEM. After a failure obj is as after model_done().
 */
int model_from_json(const struct type *type, const json_t *json, void *obj, struct err *e);
/* The same from text; a text that is no JSON gives "line 3, column 7: …". name stands before it,
 * may be NULL. */
int model_from_text(
    const struct type *type, const char *text, size_t len, void *obj, struct err *e);

enum model_flags {
	MODEL_COMPACT = 1, /* leaves out what is empty: for storing. Decodes to the same object */
	MODEL_INDENT = 2,
};

/* A new reference, or NULL (no memory). For composing; long answers are better made as text. */
json_t *model_to_json(const struct type *type, const void *obj, enum model_flags flags);

/* Text that grows. text is NUL-terminated when not NULL; the holder frees it. failed: memory ran
 * out once. */
struct text {
	char *text;
	size_t len, size;
	bool failed;
};

/* Appends the object as JSON text, several times faster than model_to_json(). What is no UTF-8
 * (a task's output in an error) becomes U+FFFD. 0 or -ENOMEM. */
int model_to_text(const struct type *type, const void *obj, enum model_flags flags, struct text *t);
void text_append(struct text *t, const char *bytes, size_t len);
void text_printf(struct text *t, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
void text_json_string(struct text *t, const char *s); /* quoted */
void text_done(struct text *t);

/* Fills what is unset and has a default in the table, in all structs below too. 0 or -ENOMEM. */
int model_defaults(const struct type *type, void *obj);
/* Adds a sentence for everything that is wrong in obj and below: `group "web": task "t": …`. */
void model_validate(const struct type *type, const void *obj, struct problems *p);
/* Deep copy into *to, which is initialised first (not freed). 0 or -ENOMEM, then *to is empty. */
int model_copy(const struct type *type, const void *from, void *to);
/* Fields with FIELD_NO_EQUAL (indexes, times, status) do not count. Maps are equal in any order;
 * NULL equals empty. */
bool model_equal(const struct type *type, const void *a, const void *b);
/* The first difference as a path ("Tasks[0].Env"), for messages; false and untouched when equal. */
bool model_difference(
    const struct type *type, const void *a, const void *b, char *ret, size_t size);

/* --- members: strings, lists, maps --- */
static inline const char *
str(const char *s)
{
	return s ? s : "";
}
bool str_eq(const char *a, const char *b); /* NULL equals "" */
/* Replaces *s by a copy (NULL for an empty one). 0 or -ENOMEM. */
int str_set(char **s, const char *value);
int str_setf(char **s, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

int strings_add(struct strings *l, const char *s);
bool strings_has(const struct strings *l, const char *s);
bool strings_remove(struct strings *l, const char *s); /* was it there? */
void strings_done(struct strings *l);

const char *string_map_get(const struct string_map *m, const char *key); /* NULL: not there */
int string_map_set(struct string_map *m, const char *key, const char *value);
/* The same for a key that is known not to be there. */
int string_map_append(struct string_map *m, const char *key, const char *value);
bool string_maps_differ(const struct string_map *a, const struct string_map *b);
int64_t *int_map_at(struct int_map *m, const char *key); /* made with 0 when new; NULL: no memory */

/*
 * For MODEL_LIST and MODEL_MAP members; elements move when the list grows. list_add() gives the new
 * element, initialised. map_get() gives the value or NULL; map_put() finds or makes it (NULL: no
 * memory).
 */
void *model_list_add(const struct type *item, void *list);
void model_list_remove(const struct type *item, void *list, size_t index);
void *model_map_get(const struct type *item, const void *map, const char *key);
void *model_map_put(const struct type *item, void *map, const char *key);
bool model_map_remove(const struct type *item, void *map, const char *key);

#define list_add(item, list)       ((struct item *)model_list_add(&item##_type, (list)))
#define list_remove(item, list, i) model_list_remove(&item##_type, (list), (i))
#define map_get(item, map, key)    ((struct item *)model_map_get(&item##_type, (map), (key)))
#define map_put(item, map, key)    ((struct item *)model_map_put(&item##_type, (map), (key)))
#define map_remove(item, map, key) model_map_remove(&item##_type, (map), (key))

/*
 * For struct job: job_type, job_new(), job_free(), job_init(), job_done(), job_copy() and the
 * cleanups `cleanup_with(job_free) struct job *` and `cleanup_done(job) struct job`.
 */
#define MODEL_DECLARE(item)                                                                        \
	extern const struct type item##_type;                                                      \
	static inline struct item *item##_new(void)                                                \
	{                                                                                          \
		return model_new(&item##_type);                                                    \
	}                                                                                          \
	static inline void item##_free(struct item *obj)                                           \
	{                                                                                          \
		model_free(&item##_type, obj);                                                     \
	}                                                                                          \
	static inline void item##_init(struct item *obj)                                           \
	{                                                                                          \
		model_init(&item##_type, obj);                                                     \
	}                                                                                          \
	static inline void item##_done(struct item *obj)                                           \
	{                                                                                          \
		model_done(&item##_type, obj);                                                     \
	}                                                                                          \
	static inline int item##_copy(const struct item *from, struct item *to)                    \
	{                                                                                          \
		return model_copy(&item##_type, from, to);                                         \
	}                                                                                          \
	DEFINE_CLEANUP(struct item *, item##_free)
#define cleanup_done(item) __attribute__((__cleanup__(item##_done)))

#define cleanup_json __attribute__((__cleanup__(json_decref_p)))
static inline void
json_decref_p(json_t **json)
{
	json_decref(*json);
}

#endif
