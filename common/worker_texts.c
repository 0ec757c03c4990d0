// SPDX-License-Identifier: Apache-2.0
/* worker_texts.c: the limits, the texts and the result of a worker. Runs in: workers of job-parser
 * and template-renderer. */
#include "common/worker_texts.h"

#include <errno.h>
#include <sys/resource.h>

#include "common/fd.h"

static int
set_limits(const struct worker_limits *limits, struct err *e)
{
	const struct rlimit cpu = { limits->cpu_seconds, limits->cpu_seconds };
	const struct rlimit memory = { limits->memory_bytes, limits->memory_bytes };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0)
		return err_set(e, -errno, "limit the processor time of a worker");
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
	if (setrlimit(RLIMIT_AS, &memory) < 0)
		return err_set(e, -errno, "limit the memory of a worker");
#endif
	(void)memory;
	return 0;
}

int
worker_texts_begin(
    const struct worker_limits *limits, int fd, struct worker_texts *texts, struct err *e)
{
	const void *text;
	size_t len;
	int r;

	r = set_limits(limits, e);
	if (r < 0)
		return r;
	r = fd_memfd_map(fd, limits->texts_bytes, &text, &len);
	if (r < 0)
		return err_set(e, r, "read the texts of a request");
	if (texts->first_len == 0 || texts->first_len + texts->second_len != len)
		return err_say(e, -EINVAL, "the texts of a request have not the announced length");
	texts->first = text;
	texts->second = (const char *)text + texts->first_len;
	return 0;
}

int
worker_texts_end(
    const char *result, size_t len, size_t max, struct worker_result *ret, struct err *e)
{
	if (len > max)
		return err_say(e, -EFBIG, "the result is too large: it may have %zu bytes", max);
	ret->fd = fd_memfd_sealed("result", result, len);
	return ret->fd < 0 ? err_set(e, ret->fd, "return the result") : 0;
}
