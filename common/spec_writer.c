// SPDX-License-Identifier: Apache-2.0
/* spec_writer.c: writes the task spec of a start. Runs in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/spec.h"

#define DIRECT_MIN 65536 /* bytes of a text that is not copied into the buffer */
#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL)

static void
add_bytes(struct spec_writer *w, const void *bytes, size_t len)
{
	if (w->len + len > w->size) {
		w->size = (w->len + len) * 2;
		w->buf = mem_resize(w->buf, w->size, 1);
	}
	memcpy(w->buf + w->len, bytes, len);
	w->len += len;
}

/* Appends the buffer and the text to the memfd, which the first one makes. */
static int
write_through(struct spec_writer *w, const char *text, size_t len)
{
	int r;

	if (w->in_memfd == 0)
		w->memfd = memfd_create("task-spec", MFD_CLOEXEC | MFD_ALLOW_SEALING);
	if (w->memfd < 0)
		return -errno;
	r = fd_write_full(w->memfd, w->buf, w->len);
	w->in_memfd += w->len + len;
	w->len = 0;
	return r < 0 ? r : fd_write_full(w->memfd, text, len);
}

void
spec_add(struct spec_writer *w, enum spec_tag tag, const char *text, size_t len)
{
	const uint32_t head[2] = { tag, (uint32_t)len };
	size_t need = sizeof head + spec_padded(len);
	static const char zeros[4];

	if (w->failed)
		return;
	if (len > SPEC_BYTES_MAX || w->in_memfd + w->len + need > SPEC_BYTES_MAX ||
	    ++w->n > SPEC_ENTRIES_MAX) {
		w->failed = -E2BIG;
		return;
	}
	add_bytes(w, head, sizeof head);
	if (len < DIRECT_MIN)
		add_bytes(w, text, len);
	else
		w->failed = write_through(w, text, len);
	add_bytes(w, zeros, spec_padded(len) - len);
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

	if (w->no_files)
		return;
	spec_add_str(w, SPEC_FILE, head);
	spec_add(w, SPEC_FILE_DATA, data, len);
}

int
spec_finish(struct spec_writer *w)
{
	int r = w->failed;

	if (!r && w->in_memfd == 0)
		r = fd_memfd_sealed("task-spec", w->buf, w->len);
	else if (!r && (r = write_through(w, "", 0)) == 0)
		r = fcntl(w->memfd, F_ADD_SEALS, SEALS) < 0 ? -errno : steal_fd(&w->memfd);
	spec_writer_done(w);
	return r;
}

void
spec_writer_done(struct spec_writer *w)
{
	if (w->in_memfd > 0)
		close_p(&w->memfd);
	free(w->buf);
	*w = (struct spec_writer){ 0 };
}
