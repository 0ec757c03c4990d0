// SPDX-License-Identifier: Apache-2.0
/* spec_writer.c: writes the task spec of a start. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/spec.h"

void
spec_add(struct spec_writer *w, enum spec_tag tag, const char *text, size_t len)
{
	uint32_t head[2] = { tag, (uint32_t)len };
	size_t need = sizeof head + spec_padded(len);

	if (w->failed)
		return;
	if (len > SPEC_BYTES_MAX || w->len + need > SPEC_BYTES_MAX || ++w->n > SPEC_ENTRIES_MAX) {
		w->failed = -E2BIG;
		return;
	}
	if (w->len + need > w->size) {
		w->size = (w->len + need) * 2;
		w->buf = mem_resize(w->buf, w->size, 1);
	}
	memcpy(w->buf + w->len, head, sizeof head);
	memset(w->buf + w->len + sizeof head, 0, spec_padded(len));
	memcpy(w->buf + w->len + sizeof head, text, len);
	w->len += need;
}

void
spec_add_str(struct spec_writer *w, enum spec_tag tag, const char *text)
{
	spec_add(w, tag, text, strlen(text));
}

void
spec_add_file(struct spec_writer *w, const struct spec_file *file, const void *data, size_t len)
{
	cleanup_free char *head = mem_printf(
	    "%o %lld %lld %s", file->mode, (long long)file->uid, (long long)file->gid, file->path);

	spec_add_str(w, SPEC_FILE, head);
	spec_add(w, SPEC_FILE_DATA, data, len);
}

int
spec_finish(struct spec_writer *w)
{
	int r = w->failed;

	if (!r)
		r = fd_memfd_sealed("task-spec", w->buf, w->len);
	free(w->buf);
	*w = (struct spec_writer){ 0 };
	return r;
}
