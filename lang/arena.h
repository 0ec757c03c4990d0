/* SPDX-License-Identifier: Apache-2.0 */
/* arena.h: the memory of a document and of everything computed from it, with limits on memory
 * and steps. What meets an error or exceeds a limit leaves with arena_leave(), which returns to
 * the innermost arena_try(). Runs in: cli, job-parser, template-renderer, supervisor (ACL
 * policies), the launcher's configuration child. */
#ifndef DROVER_LANG_ARENA_H
#define DROVER_LANG_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena_chunk;
struct arena_end;

/* Starts with its limits set and everything else 0. */
struct arena {
	size_t memory_max;  /* bytes */
	uint64_t steps_max; /* of evaluation */
	unsigned depth_max; /* of arena_enter() */
	unsigned depth;
	struct arena_chunk *chunks; /* the first has the free space */
	struct arena_end *ends;     /* of arena_at_end(), the last first */
	size_t memory;              /* bytes in chunks, and of arena_count_memory() */
	uint64_t steps;             /* counted so far */
	const char *
	    exhausted; /* the limit that was exceeded: "much memory", "many steps", "many levels" */
	jmp_buf *guard; /* of the innermost arena_try() */
};

void arena_done(struct arena *a);
/* arena_done() calls fn(arg) before it frees the memory: for objects of libraries, which are not in
 * the arena. arena_count_memory() counts their bytes. */
void arena_at_end(struct arena *a, void (*fn)(void *arg), void *arg);
void arena_count_memory(struct arena *a, size_t n);

/* Returns zeroed memory, aligned for any type; never NULL. */
void *arena_alloc(struct arena *a, size_t size);
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))
/* Returns the bytes with a NUL after them. */
char *arena_strndup(struct arena *a, const char *s, size_t len);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list args);

/* Counts n steps; arena_count_bytes() those of a function that goes through n bytes. */
void arena_step(struct arena *a, uint64_t n);
void arena_count_bytes(struct arena *a, size_t n);

/* Begin and end a level of a recursion. arena_try() restores the depth. */
void arena_enter(struct arena *a);
void arena_exit(struct arena *a);

/* Calls fn(arg). Returns whether it returned; false after arena_leave(). After a limit was exceeded
 * it fails at once. */
bool arena_try(struct arena *a, void (*fn)(void *arg), void *arg);
void arena_leave(struct arena *a) __attribute__((noreturn));

#endif
