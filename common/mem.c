/* SPDX-License-Identifier: Apache-2.0 */
/* mem.c: allocations that cannot fail. Runs in: supervisor, csi-helper, heartbeat, check-helper,
 * job-parser, cli. */
#include "common/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* write() needs no memory, which log_error() may. */
void
mem_exhausted(void)
{
	static const char line[] = "drover: out of memory\n";

	(void)!write(STDERR_FILENO, line, sizeof line - 1);
	abort();
}

void *
mem_alloc(size_t size)
{
	return mem_need(malloc(size > 0 ? size : 1));
}

void *
mem_zeroed(size_t n, size_t size)
{
	return mem_need(calloc(n > 0 ? n : 1, size));
}

void *
mem_resize(void *p, size_t n, size_t size)
{
	return mem_need(reallocarray(p, n > 0 ? n : 1, size));
}

char *
mem_strdup(const char *s)
{
	return mem_need(strdup(s));
}

char *
mem_strndup(const char *s, size_t len)
{
	return mem_need(strndup(s, len));
}

char *
mem_vprintf(const char *fmt, va_list args)
{
	char *made;

	if (vasprintf(&made, fmt, args) < 0)
		mem_exhausted();
	return made;
}

char *
mem_printf(const char *fmt, ...)
{
	va_list args;
	char *made;

	va_start(args, fmt);
	made = mem_vprintf(fmt, args);
	va_end(args);
	return made;
}
