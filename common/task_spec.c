// SPDX-License-Identifier: Apache-2.0
/* task_spec.c: parses the task spec of a start. Runs in: executor. */
#include "common/spec.h"

#include <errno.h>
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
	if (head[0] < SPEC_COMMAND || head[0] > SPEC_SECRET_DATA || head[1] > SPEC_BYTES_MAX)
		return -EBADMSG;
	need = spec_padded(head[1]);
	if (size - *at - sizeof head < need)
		return -EBADMSG;
	*ret =
	    (struct spec_entry){ .tag = head[0], .len = head[1], .text = base + *at + sizeof head };
	for (size_t i = head[1]; i < need; i++)
		if (ret->text[i] != '\0')
			return -EBADMSG;
	if (head[0] != SPEC_SECRET_DATA && memchr(ret->text, '\0', head[1]))
		return -EBADMSG;
	*at += sizeof head + need;
	return 1;
}
