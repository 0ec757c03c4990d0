/* SPDX-License-Identifier: Apache-2.0 */
/* arena.c: memory with limits, and the way out of an error. Runs in: cli, job-parser,
 * template-renderer, supervisor (ACL policies), the launcher's configuration child. */
#include "lang/arena.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"

#define BYTES_PER_STEP 16
#define CHUNK_SIZE     ((size_t)64 * 1024)
#define ALIGNMENT      16

struct arena_chunk {
	struct arena_chunk *next;
	size_t size, used;
	_Alignas(ALIGNMENT) char bytes[];
};

struct arena_end {
	struct arena_end *next;
	void (*fn)(void *arg);
	void *arg;
};

void
arena_done(struct arena *a)
{
	struct arena_chunk *next;

	for (const struct arena_end *end = a->ends; end; end = end->next)
		end->fn(end->arg);
	a->ends = NULL;
	for (struct arena_chunk *c = a->chunks; c; c = next) {
		next = c->next;
		free(c);
	}
	a->chunks = NULL;
}

static void
exceed_limit(struct arena *a, const char *what)
{
	if (!a->exhausted)
		a->exhausted = what;
	arena_leave(a);
}

/* Returns the new chunk; it is the first one unless it is large and the first one has room. */
static struct arena_chunk *
add_chunk(struct arena *a, size_t size)
{
	size_t bytes = size > CHUNK_SIZE / 4 ? size : CHUNK_SIZE;
	/* The sentence about an exceeded limit may use a little more; callers outside of
	 * arena_try(), who write sentences, have no limit. */
	bool free_of_charge = !a->guard || (a->exhausted && size <= CHUNK_SIZE / 4);
	struct arena_chunk *c;

	if (!free_of_charge && bytes > a->memory_max - a->memory)
		exceed_limit(a, "much memory");
	c = mem_zeroed(1, sizeof *c + bytes);
	c->size = bytes;
	a->memory += free_of_charge ? 0 : bytes;
	if (bytes > CHUNK_SIZE / 4 && a->chunks && bytes != CHUNK_SIZE) {
		c->next = a->chunks->next;
		a->chunks->next = c;
	} else {
		c->next = a->chunks;
		a->chunks = c;
	}
	return c;
}

void *
arena_alloc(struct arena *a, size_t size)
{
	struct arena_chunk *c = a->chunks;
	size_t need;
	void *p;

	if (a->guard && size > a->memory_max)
		exceed_limit(a, "much memory");
	need = (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
	if (need == 0)
		need = ALIGNMENT;
	if (!c || c->size - c->used < need)
		c = add_chunk(a, need);
	p = c->bytes + c->used;
	c->used += need;
	return p;
}

void
arena_at_end(struct arena *a, void (*fn)(void *arg), void *arg)
{
	struct arena_end *end = arena_new(a, struct arena_end);

	*end = (struct arena_end){ a->ends, fn, arg };
	a->ends = end;
}

void
arena_count_memory(struct arena *a, size_t n)
{
	if (a->guard && n > a->memory_max - a->memory)
		exceed_limit(a, "much memory");
	a->memory += n;
}

char *
arena_strndup(struct arena *a, const char *s, size_t len)
{
	char *copy = arena_alloc(a, len + 1);

	if (len > 0)
		memcpy(copy, s, len);
	return copy;
}

char *
arena_vprintf(struct arena *a, const char *fmt, va_list args)
{
	va_list again;
	char *text;
	int n;

	va_copy(again, args);
	n = vsnprintf(NULL, 0, fmt, again);
	va_end(again);
	text = arena_alloc(a, (size_t)n + 1);
	(void)vsnprintf(text, (size_t)n + 1, fmt, args);
	return text;
}

char *
arena_printf(struct arena *a, const char *fmt, ...)
{
	va_list args;
	char *text;

	va_start(args, fmt);
	text = arena_vprintf(a, fmt, args);
	va_end(args);
	return text;
}

void
arena_step(struct arena *a, uint64_t n)
{
	if (n > a->steps_max - a->steps)
		exceed_limit(a, "many steps");
	a->steps += n;
}

void
arena_count_bytes(struct arena *a, size_t n)
{
	arena_step(a, 1 + n / BYTES_PER_STEP);
}

void
arena_enter(struct arena *a)
{
	if (++a->depth > a->depth_max)
		exceed_limit(a, "many levels");
}

void
arena_exit(struct arena *a)
{
	a->depth--;
}

bool
arena_try(struct arena *a, void (*fn)(void *arg), void *arg)
{
	jmp_buf *before = a->guard;
	unsigned depth = a->depth;
	jmp_buf here;

	if (a->exhausted)
		return false;
	if (setjmp(here) != 0) {
		a->guard = before;
		a->depth = depth;
		return false;
	}
	a->guard = &here;
	fn(arg);
	a->guard = before;
	return true;
}

void
arena_leave(struct arena *a)
{
	if (!a->guard)
		abort(); /* a caller forgot arena_try() */
	longjmp(*a->guard, 1);
}
