/* SPDX-License-Identifier: Apache-2.0 */
/*
 * field.h: a table of fields describes a struct once; JSON in both directions, defaults,
 * validation, copy and comparison follow from it. Runs in: supervisor, cli.
 *
 * Members have these forms. A string is a char * on the heap, NULL when it is empty (str() gives
 * ""). Counts, sizes and indexes are int64_t or uint64_t. A duration is an int64_t in nanoseconds.
 * A time is an int64_t in nanoseconds since 1970 UTC, 0 = never. An enum is a C enum whose value 0
 * is the empty string. Where "not set" differs from zero, an int64_t is MODEL_UNSET and a boolean
 * is an enum opt_bool. Lists and maps are {v, n}: if v is NULL they are Go's nil, else with n 0
 * they are empty. A block that this node only stores and shows is a json_t *.
 */
#ifndef DROVER_MODEL_ENGINE_FIELD_H
#define DROVER_MODEL_ENGINE_FIELD_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/cleanup.h"
#include "common/err.h"
#include "model/engine/containers.h"
#include "model/engine/text.h"

#define MODEL_UNSET     INT64_MIN
#define MODEL_DEPTH_MAX 64

struct field;
struct place;
struct problems;

struct type {
	const char *name; /* for error sentences: "group" */
	size_t size;
	const struct field *fields; /* table.h */
	size_t n;
	size_t title; /* 1 + offset of the char * that names it in errors; 0 if there is none */
	bool bare;    /* encoded as its only field's value: for lists of lists and maps of lists */
	/* Adds the problems of this struct alone, with model_problem(). May be NULL. */
	void (*validate)(const void *obj, struct problems *p);
};

/* Sentences about problems, in the order of the struct's fields. */
struct problems {
	struct strings list;
	const struct place *place; /* the position of the validation */
};

/* model_problem() keeps only the first 100 problems, each as one printable line. problems_text()
 * returns all, one per line; "" if there are none; the caller frees it. problems_err() joins those
 * that fit into one error, "a; b; 3 more"; returns 0 if there are none, else -EINVAL. */
void model_problem(struct problems *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *problems_text(const struct problems *p);
int problems_err(const struct problems *p, struct err *e);
void problems_done(struct problems *p);

/* A zeroed struct is a valid empty object, but fields that can be unset are 0 instead of unset. */
void model_init(const struct type *type, void *obj); /* unset if it can be unset, else zero */
void model_done(const struct type *type, void *obj); /* frees the contents and initialises again */
void *model_new(const struct type *type);
void model_free(const struct type *type, void *obj);

/*
 * Decodes into an initialised object. Keys match as in Go: exactly, else ignoring case. Unknown
 * keys are ignored; null leaves a field unchanged. A duration may be a number of nanoseconds or a
 * text such as "30s". Returns 0; -EINVAL with `TaskGroups[0].Tasks[1].Resources.CPU: expected a
 * number, found "x"`. After a failure obj is as after model_done().
 */
int model_from_json(const struct type *type, const json_t *json, void *obj, struct err *e);
/* Returns whether a value is empty, as the nomad command writes all members of its own version:
 * null, false, 0, "", [], or an object with only such members. */
bool json_says_nothing(const json_t *json);
/* Adds a sentence for each member of this JSON that the decoder ignores and that says something,
 * with its path and the name that was probably meant; at most 20. */
void model_find_unknown(const struct type *type, const json_t *json, struct problems *p);
/* As model_from_json(), from text. If it is not valid JSON, the error is "line 3, column 7: …". */
int model_from_text(
    const struct type *type, const char *text, size_t len, void *obj, struct err *e);

enum model_flags {
	MODEL_COMPACT = 1, /* leaves out empty fields, for storing; decodes to the same object */
	MODEL_INDENT = 2,
	MODEL_ROW = 4, /* leaves out secrets (FIELD_SEALED), which are stored encrypted */
};

/* Returns a new reference. model_to_text() is faster for long answers. */
json_t *model_to_json(const struct type *type, const void *obj, enum model_flags flags);

/* Appends the object as JSON text, several times faster than model_to_json(). Bytes that are not
 * UTF-8 (a task's output in an error) become U+FFFD. */
void model_to_text(
    const struct type *type, const void *obj, enum model_flags flags, struct text *t);

/* Sets unset fields with a default in the table, in nested structs too. */
void model_defaults(const struct type *type, void *obj);
/* Adds a sentence for each problem of obj and its nested structs: `group "web": task "t": …`. */
void model_validate(const struct type *type, const void *obj, struct problems *p);
/* Copies deeply into *to, which must hold nothing. */
void model_copy(const struct type *type, const void *from, void *to);
/* Returns whether a and b are equal. Fields with FIELD_NO_EQUAL (indexes, times, status) are
 * ignored. The order of maps does not matter; NULL equals empty. */
bool model_equal(const struct type *type, const void *a, const void *b);
/* Writes the path of the first difference ("Tasks[0].Env"); false, ret untouched: there is none. */
bool model_difference(
    const struct type *type, const void *a, const void *b, char *ret, size_t size);

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
	static inline void item##_copy(const struct item *from, struct item *to)                   \
	{                                                                                          \
		model_copy(&item##_type, from, to);                                                \
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
