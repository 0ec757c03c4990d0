/* SPDX-License-Identifier: Apache-2.0 */
/* cleanup.h: releases what a variable owns when it leaves its scope. Runs in: every process. */
#ifndef DROVER_COMMON_CLEANUP_H
#define DROVER_COMMON_CLEANUP_H

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Declares the helper for cleanup_with(fn): calls fn(*p) when the variable leaves its scope and *p
 * is not NULL. */
#define DEFINE_CLEANUP(type, fn)                                                                   \
	static inline void fn##_p(type *p)                                                         \
	{                                                                                          \
		if (*p)                                                                            \
			fn(*p);                                                                    \
	}                                                                                          \
	_Static_assert(1, "")

#define cleanup_with(fn) __attribute__((__cleanup__(fn##_p)))

/* Frees the pointer at p, which may be of any type, and sets it to NULL. */
static inline void
free_p(void *p)
{
	free(*(void **)p);
	memset(p, 0, sizeof(void *));
}

DEFINE_CLEANUP(FILE *, fclose);
DEFINE_CLEANUP(DIR *, closedir);

/* Returns *fd and sets it to -1, so that the caller's scope no longer closes it. */
static inline int
steal_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

/* Closes *fd unless it is negative, and sets it to -1. Keeps errno. */
static inline void
close_p(int *fd)
{
	int saved = errno;

	if (*fd >= 0)
		(void)close(steal_fd(fd));
	errno = saved;
}

#define cleanup_free  __attribute__((__cleanup__(free_p)))
#define cleanup_close __attribute__((__cleanup__(close_p)))
#define cleanup_file  cleanup_with(fclose)
#define cleanup_dir   cleanup_with(closedir)

/* Returns the pointer p and sets p to NULL. */
#define steal_ptr(p)                                                                               \
	({                                                                                         \
		__typeof__(p) _p = (p);                                                            \
		__typeof__(*_p) _taken = *_p;                                                      \
		*_p = NULL;                                                                        \
		_taken;                                                                            \
	})

#define ELEMENTSOF(a) (sizeof(a) / sizeof((a)[0]))

#endif
