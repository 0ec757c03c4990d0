/* SPDX-License-Identifier: Apache-2.0 */
/* mem.h: allocations that cannot fail. Runs in: supervisor, csi-helper, heartbeat, check-helper,
 * job-parser, cli. */
#ifndef DROVER_COMMON_MEM_H
#define DROVER_COMMON_MEM_H

#include <stdarg.h>
#include <stddef.h>

/*
 * The policy for memory: a program that gets no memory for its own small objects cannot do its
 * work, so it ends with one line in the log. The launcher starts it again, and tasks do not depend
 * on it. Input from outside never gets this far: its size is limited where it is read. A buffer
 * whose size a peer chooses comes from malloc(), and its owner refuses the input if there is no
 * memory.
 */

/* Logs that memory is exhausted and aborts. */
void mem_exhausted(void) __attribute__((noreturn, cold));

/* These are malloc(), calloc(), reallocarray(), strdup(), strndup() and asprintf(), but never
 * return NULL. The caller frees the result with free(). */
void *mem_alloc(size_t size) __attribute__((malloc, returns_nonnull));
void *mem_zeroed(size_t n, size_t size) __attribute__((malloc, returns_nonnull));
void *mem_resize(void *p, size_t n, size_t size) __attribute__((returns_nonnull));
char *mem_strdup(const char *s) __attribute__((malloc, returns_nonnull));
char *mem_strndup(const char *s, size_t len) __attribute__((malloc, returns_nonnull));
char *mem_printf(const char *fmt, ...)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 2)));
char *mem_vprintf(const char *fmt, va_list args)
    __attribute__((malloc, returns_nonnull, format(printf, 1, 0)));

/* Returns p, the result of a library's function that returns NULL only without memory. */
#define mem_need(p)                                                                                \
	({                                                                                         \
		__typeof__(p) _need = (p);                                                         \
		if (!_need)                                                                        \
			mem_exhausted();                                                           \
		_need;                                                                             \
	})

/* Returns a zeroed object of this type. */
#define mem_new(type) ((type *)mem_zeroed(1, sizeof(type)))

#endif
