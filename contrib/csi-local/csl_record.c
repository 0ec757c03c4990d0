// SPDX-License-Identifier: Apache-2.0
/* csl_record.c: writes and reads the files of records. Runs in: drover-csi-local. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "contrib/csi-local/csl_store_impl.h"

#define RECORD_MAX     (4 * 1024 * 1024)
#define RECORD_VERSION 1
#define NAME_SIZE      256

int
csl_record_write(int dir_fd, const char *noun, const char *name, const void *record, struct err *e)
{
	size_t size = protobuf_c_message_get_packed_size(record);
	cleanup_free uint8_t *data = mem_alloc(size > 0 ? size : 1);
	cleanup_close int fd = -1;
	char temporary[NAME_SIZE];
	int r;

	if (size > RECORD_MAX)
		return err_set(e, -EFBIG, "write the record of %s %s", noun, name);
	(void)snprintf(temporary, sizeof temporary, ".new-%s", name);
	(void)protobuf_c_message_pack(record, data);
	fd = openat(dir_fd, temporary, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(e, -errno, "write the record of %s %s", noun, name);
	r = fd_write_full(fd, data, size);
	if (r < 0 || fsync(fd) < 0 || renameat(dir_fd, temporary, dir_fd, name) < 0 ||
	    fsync(dir_fd) < 0) {
		r = err_set(e, r < 0 ? r : -errno, "write the record of %s %s", noun, name);
		(void)unlinkat(dir_fd, temporary, 0);
		return r;
	}
	return 0;
}

/* All records begin with their version. */
static uint32_t
record_version(const void *record, const ProtobufCMessageDescriptor *d)
{
	return *(const uint32_t *)((const char *)record + d->fields[0].offset);
}

void *
csl_record_read(int dir_fd, const char *noun, const char *name, const ProtobufCMessageDescriptor *d,
    struct csl_arena *a, struct err *e)
{
	cleanup_free char *data = NULL;
	ssize_t n = fd_read_file(dir_fd, name, RECORD_MAX, &data);
	void *record;

	if (n < 0) {
		(void)err_set(e, (int)n, "read the record of %s %s", noun, name);
		return NULL;
	}
	record = protobuf_c_message_unpack(d, &a->protobuf, (size_t)n, (const uint8_t *)data);
	if (!record) {
		(void)err_say(e, -EBADMSG, "the record of %s %s is damaged", noun, name);
		return NULL;
	}
	if (record_version(record, d) != RECORD_VERSION) {
		(void)err_say(e, -EBADMSG,
		    "the record of %s %s has version %u; this plugin supports version %d", noun,
		    name, record_version(record, d), RECORD_VERSION);
		return NULL;
	}
	return record;
}

int
csl_record_remove(int dir_fd, const char *noun, const char *name, struct err *e)
{
	if ((unlinkat(dir_fd, name, 0) < 0 && errno != ENOENT) || fsync(dir_fd) < 0)
		return err_set(e, -errno, "remove the record of %s %s", noun, name);
	return 0;
}
