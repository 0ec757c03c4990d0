/* SPDX-License-Identifier: Apache-2.0 */
/*
 * hcl.h: documents in HCL's native syntax (hashicorp/hcl, version 2): parsing, and the limits that
 * hold for a document and everything computed from it. Runs in: cli, job-parser, supervisor (ACL
 * policies), the launcher's configuration child.
 *
 * All objects of a document are in one arena, which hcl_free() releases. Nothing else is allocated,
 * so a function that meets an error or exceeds a limit reports it with hcl_fail(), which returns to
 * the innermost hcl_try(). Functions of this library that return a pointer never return NULL unless
 * their comment says so.
 */
#ifndef DROVER_HCL_HCL_H
#define DROVER_HCL_HCL_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct hcl;
struct hcl_body;
struct hcl_expr;

/* A text with its name, as error sentences show it. Both outlive the document. */
struct hcl_source {
	const char *name;
	const char *text;
	size_t len;
};

/* The bytes [from, to) of a source; source is NULL for a value without a place in a text. */
struct hcl_range {
	const struct hcl_source *source;
	uint32_t from, to;
};

struct hcl_limits {
	size_t source_bytes; /* of one source */
	size_t memory_bytes; /* of the arena */
	uint64_t steps;      /* expressions evaluated, and elements that functions handle */
	unsigned depth;      /* of nested blocks and expressions */
};

/* For a job file: 4 MiB of source, 96 MiB of memory, 10 million steps, a depth of 200. */
extern const struct hcl_limits hcl_job_limits;

struct hcl *hcl_new(const struct hcl_limits *limits);
void hcl_free(struct hcl *h);

/* The arena of the document, for texts (lang/text.h). */
struct arena *hcl_arena(struct hcl *h);

/* Returns zeroed memory of the arena, aligned for any type. */
void *hcl_alloc(struct hcl *h, size_t size);
#define hcl_new_object(h, type) ((type *)hcl_alloc((h), sizeof(type)))
/* Returns the bytes with a NUL after them, in the arena. */
char *hcl_strndup(struct hcl *h, const char *s, size_t len);
char *hcl_printf(struct hcl *h, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

/* Counts n steps. */
void hcl_step(struct hcl *h, uint64_t n);
/* Counts the steps of a function that goes through n bytes. */
void hcl_count_bytes(struct hcl *h, size_t n);

/* Calls fn(arg). Returns whether it returned; false after hcl_fail(). */
typedef void hcl_try_fn(struct hcl *h, void *arg);
bool hcl_try(struct hcl *h, hcl_try_fn *fn, void *arg);

/*
 * A problem of the document: a sentence, and the place that it is about. hcl_error() adds one and
 * returns, for problems beside which others can be found; hcl_fail() does not return. After a limit
 * was exceeded, hcl_try() fails at once.
 */
struct hcl_problem {
	struct hcl_range at;
	const char *text;
	bool warning;
	struct hcl_problem *next;
};

void hcl_error(struct hcl *h, struct hcl_range at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void hcl_warn(struct hcl *h, struct hcl_range at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4)));
void hcl_fail(struct hcl *h, struct hcl_range at, const char *fmt, ...)
    __attribute__((format(printf, 3, 4), noreturn));
/* Leaves after problems were added with hcl_error(). */
void hcl_leave(struct hcl *h) __attribute__((noreturn));

/* The problems so far, in the order of their discovery; at most HCL_PROBLEMS_MAX are kept. */
#define HCL_PROBLEMS_MAX 20
const struct hcl_problem *hcl_problems(const struct hcl *h);
unsigned hcl_error_count(const struct hcl *h);
/* Removes the problems after the first n, for a failure that the document itself handles: none
 * after a limit was exceeded. */
unsigned hcl_problem_count(const struct hcl *h);
void hcl_forget_problems(struct hcl *h, unsigned n);

/* The line and column of a byte, counted from 1. A column is a character of UTF-8. */
struct hcl_position {
	unsigned line, column;
};
struct hcl_position hcl_position(const struct hcl_source *source, uint32_t byte);

/*
 * Writes the problem as text into the arena:
 *	web.nomad.hcl:12:5: unknown block "resorces": did you mean "resources"?
 *	  12 |     resorces {
 *	     |     ^^^^^^^^
 */
char *hcl_problem_text(struct hcl *h, const struct hcl_problem *p);
/* Only the first line of that. */
char *hcl_problem_line(struct hcl *h, const struct hcl_problem *p);

#endif
