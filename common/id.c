// SPDX-License-Identifier: Apache-2.0
/* id.c: parses and prints ids, checks names. Runs in: every process. */
#include "common/id.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "common/cleanup.h"
#include "common/fd.h"

static const char digits[] = "0123456789abcdef";

struct id
id_random(void)
{
	struct id id;

	while (getrandom(id.b, sizeof id.b, 0) != (ssize_t)sizeof id.b)
		if (errno != EINTR)
			abort();
	return id;
}

bool
id_is_zero(const struct id *a)
{
	static const struct id zero;

	return memcmp(a->b, zero.b, sizeof a->b) == 0;
}

void
id_to_hex(const struct id *id, char ret[ID_HEX_SIZE])
{
	for (size_t i = 0; i < ID_BYTES; i++) {
		ret[2 * i] = digits[id->b[i] >> 4];
		ret[2 * i + 1] = digits[id->b[i] & 15];
	}
	ret[2 * ID_BYTES] = '\0';
}

void
id_to_uuid(const struct id *id, char ret[ID_UUID_SIZE])
{
	size_t at = 0;

	for (size_t i = 0; i < ID_BYTES; i++) {
		if (i == 4 || i == 6 || i == 8 || i == 10)
			ret[at++] = '-';
		ret[at++] = digits[id->b[i] >> 4];
		ret[at++] = digits[id->b[i] & 15];
	}
	ret[at] = '\0';
}

bool
id_from_bytes(const void *data, size_t len, struct id *ret)
{
	struct id id;

	if (len != ID_BYTES)
		return false;
	memcpy(id.b, data, ID_BYTES);
	if (id_is_zero(&id))
		return false;
	*ret = id;
	return true;
}

int
id_alloc_read(const struct id *id, char ret[ID_UUID_SIZE], struct err *e)
{
	if (id_is_zero(id))
		return err_say(e, -EINVAL, "the request names no alloc");
	id_to_uuid(id, ret);
	return 0;
}

bool
name_is_component(const char *name)
{
	static const char permitted[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	size_t len = strnlen(name, NAME_BYTES_MAX + 1);

	return len > 0 && len <= NAME_BYTES_MAX && name[0] != '.' && strspn(name, permitted) == len;
}

bool
name_is_path(const char *path)
{
	char part[NAME_PATH_MAX + 1];
	size_t len = strnlen(path, sizeof part), n;

	for (size_t at = 0; len < sizeof part && at <= len; at += n + 1) {
		n = strcspn(path + at, "/");
		memcpy(part, path + at, n);
		part[n] = '\0';
		if (!name_is_component(part))
			return false;
	}
	return len < sizeof part;
}

bool
name_is_task(const char *name)
{
	return name_is_component(name) && strcmp(name, "alloc") != 0;
}

int
boot_id_read(char ret[BOOT_ID_SIZE])
{
	cleanup_close int fd = open("/proc/sys/kernel/random/boot_id", O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fd_read_full(fd, ret, BOOT_ID_SIZE - 1);
	if (n < 0)
		return (int)n;
	if (n != BOOT_ID_SIZE - 1)
		return -EIO;
	ret[BOOT_ID_SIZE - 1] = '\0';
	return 0;
}
