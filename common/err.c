// SPDX-License-Identifier: Apache-2.0
/* err.c: one error as a sentence. Runs in: every process. */
#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Writes code and message, with ": " and tail after it unless tail is NULL. Keeps errno. */
static void
write_err(struct err *e, int code, const char *tail, const char *fmt, va_list ap)
{
	int saved = errno, n;

	if (!e)
		return;
	e->code = code;
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	if (tail && n >= 0 && (size_t)n < sizeof e->msg)
		(void)snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", tail);
	errno = saved;
}

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_err(e, code, strerrordesc_np(-code) ?: "unknown error", fmt, ap);
	va_end(ap);
	return code;
}

int
err_say(struct err *e, int code, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	write_err(e, code, NULL, fmt, ap);
	va_end(ap);
	return code;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
	char old[ERR_MSG_SIZE];
	va_list ap;

	if (!e)
		return -EIO;
	memcpy(old, e->msg, sizeof old);
	va_start(ap, fmt);
	write_err(e, e->code, old, fmt, ap);
	va_end(ap);
	return e->code;
}
