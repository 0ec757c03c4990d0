// SPDX-License-Identifier: Apache-2.0
/* par_texts.c: the limits, the texts and the result of a request. Runs in: a worker of job-parser.
 */
#include <errno.h>
#include <stdlib.h>
#include <sys/resource.h>

#include "common/fd.h"
#include "common/mem.h"
#include "job-parser/par.h"

#include <jansson.h>

static int
set_limits(size_t memory_bytes, unsigned cpu_seconds, struct err *e)
{
	const struct rlimit cpu = { cpu_seconds, cpu_seconds };
	const struct rlimit memory = { memory_bytes, memory_bytes };

	if (setrlimit(RLIMIT_CPU, &cpu) < 0)
		return err_set(e, -errno, "limit the processor time of a parser");
#ifndef __SANITIZE_ADDRESS__ /* which reserves terabytes */
	if (setrlimit(RLIMIT_AS, &memory) < 0)
		return err_set(e, -errno, "limit the memory of a parser");
#endif
	(void)memory;
	return 0;
}

int
par_begin(size_t memory_bytes, unsigned cpu_seconds, int fd, struct par_texts *texts, struct err *e)
{
	const void *text;
	size_t len;
	int r;

	r = set_limits(memory_bytes, cpu_seconds, e);
	if (r < 0)
		return r;
	r = fd_memfd_map(fd, PAR_TEXT_MAX, &text, &len);
	if (r < 0)
		return err_set(e, r, "read the texts of a request");
	if (texts->first_len == 0 || texts->first_len + texts->second_len != len)
		return err_say(e, -EINVAL, "the texts of a request have not the announced length");
	texts->first = text;
	texts->second = (const char *)text + texts->first_len;
	json_set_alloc_funcs(mem_alloc, free);
	return 0;
}

int
par_end(const char *result, size_t len, struct worker_result *ret, struct err *e)
{
	if (len > PAR_RESULT_MAX)
		return err_say(e, -EFBIG, "the result is too large: as JSON it may have %d bytes",
		    PAR_RESULT_MAX);
	ret->fd = fd_memfd_sealed("result", result, len);
	return ret->fd < 0 ? err_set(e, ret->fd, "return the result") : 0;
}
