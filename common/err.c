// SPDX-License-Identifier: Apache-2.0
/* err.c: one error as a sentence. Runs in: every process. */
#include "common/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int
err_set(struct err *e, int code, const char *fmt, ...)
{
	int saved = errno, n;
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof e->msg)
		(void)snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s",
		    strerrordesc_np(-code) ?: "unknown error");
	errno = saved;
	return code;
}

int
err_say(struct err *e, int code, const char *fmt, ...)
{
	int saved = errno;
	va_list ap;

	if (!e)
		return code;
	e->code = code;
	va_start(ap, fmt);
	(void)vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	errno = saved;
	return code;
}

int
err_prefix(struct err *e, const char *fmt, ...)
{
	char old[ERR_MSG_SIZE];
	va_list ap;
	int n;

	if (!e)
		return -EIO;
	memcpy(old, e->msg, sizeof old);
	va_start(ap, fmt);
	n = vsnprintf(e->msg, sizeof e->msg, fmt, ap);
	va_end(ap);
	if (n >= 0 && (size_t)n < sizeof e->msg)
		(void)snprintf(e->msg + n, sizeof e->msg - (size_t)n, ": %s", old);
	return e->code;
}
