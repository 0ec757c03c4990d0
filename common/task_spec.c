// SPDX-License-Identifier: Apache-2.0
/* task_spec.c: parses the task spec of a start. Runs in: executor, supervisor (the names of files).
 */
#include "common/spec.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

int
spec_next(const void *spec, size_t size, size_t *at, struct spec_entry *ret)
{
	const char *base = spec;
	uint32_t head[2];
	size_t need;

	if (*at == size)
		return 0;
	if (*at > size || size - *at < sizeof head)
		return -EBADMSG;
	memcpy(head, base + *at, sizeof head);
	if (head[0] < SPEC_COMMAND || head[0] > SPEC_OPTION || head[1] > SPEC_BYTES_MAX)
		return -EBADMSG;
	need = spec_padded(head[1]);
	if (size - *at - sizeof head < need)
		return -EBADMSG;
	*ret =
	    (struct spec_entry){ .tag = head[0], .len = head[1], .text = base + *at + sizeof head };
	for (size_t i = head[1]; i < need; i++)
		if (ret->text[i] != '\0')
			return -EBADMSG;
	if (head[0] != SPEC_FILE_DATA && memchr(ret->text, '\0', head[1]))
		return -EBADMSG;
	*at += sizeof head + need;
	return 1;
}

/* Each part is a name. */
static bool
is_path(const char *path)
{
	for (;; path++) {
		size_t len = strcspn(path, "/");

		if (len == 0 || (len == 1 && path[0] == '.') ||
		    (len == 2 && !strncmp(path, "..", 2)))
			return false;
		path += len;
		if (!*path)
			return true;
	}
}

int
spec_file_parse(const char *text, struct spec_file *ret)
{
	long long uid, gid;
	unsigned mode;
	int at = 0;

	if (sscanf(text, "%o %lld %lld%n", &mode, &uid, &gid, &at) < 3 || text[at] != ' ' ||
	    mode > 0777 || uid < -1 || uid > UINT32_MAX || gid < -1 || gid > UINT32_MAX ||
	    !is_path(text + at + 1))
		return -EBADMSG;
	*ret = (struct spec_file){ mode, uid, gid, text + at + 1 };
	return 0;
}
