// SPDX-License-Identifier: Apache-2.0
/* task_payload.c: the payload of a dispatched job, as a file of a task. Runs in: supervisor. */
#include "supervisor/alloc/task_payload.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "model/payload.h"

static int
unpack_payload(const char *base64, uint8_t ret[PAYLOAD_MAX], size_t *ret_len, struct err *e)
{
	size_t len = strlen(base64);
	cleanup_free uint8_t *packed = mem_alloc(len / 4 * 3 + 1);
	int r;

	r = base64_decode(base64, packed, &len);
	if (r == 0)
		r = payload_unpack(packed, len, ret, ret_len);
	if (r == -E2BIG)
		return err_say(
		    e, -EINVAL, "the payload of the dispatch is larger than %d bytes", PAYLOAD_MAX);
	return r < 0 ? err_say(e, -EINVAL, "the payload of the dispatch is damaged") : 0;
}

int
task_payload_add_file(
    const struct sup_alloc *sa, const struct task *task, struct spec_writer *spec, struct err *e)
{
	const char *file = task->dispatch_payload ? str(task->dispatch_payload->file) : "",
		   *payload = str(sa->job->job.payload);
	char path[sizeof "local/" + NAME_PATH_MAX];
	const struct spec_file at = { .mode = 0600, .uid = -1, .gid = -1, .path = path };
	uint8_t data[PAYLOAD_MAX];
	size_t len;
	int r;

	if (!*file || !*payload)
		return 0;
	r = payload_file_check(file, e);
	if (r < 0 || (r = unpack_payload(payload, data, &len, e)) < 0)
		return r;
	(void)snprintf(path, sizeof path, "local/%s", file);
	spec_add_file(spec, &at, data, len);
	return 0;
}
