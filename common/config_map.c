// SPDX-License-Identifier: Apache-2.0
/* config_map.c: maps the records of the configuration. Runs in: every process but the cli. */
#include "common/config_map.h"

#include <errno.h>
#include <sys/mman.h>

#include "common/fd.h"

/* Checks magic and size, with which both records begin. */
static const void *
map_record(int fd, const char *what, uint32_t magic, size_t size, struct err *e)
{
	const uint32_t *head;
	const void *map;
	size_t len;
	int r;

	r = fd_memfd_map(fd, size, &map, &len);
	if (r < 0) {
		(void)err_set(e, r, "map the %s on descriptor %d", what, fd);
		return NULL;
	}
	head = map;
	if (len == size && head[0] == magic && head[1] == size)
		return map;
	if (len > 0)
		(void)munmap((void *)(uintptr_t)map, len);
	(void)err_say(e, -EBADMSG, "descriptor %d holds no %s of this build", fd, what);
	return NULL;
}

const struct agent_config *
config_map(int fd, struct err *e)
{
	return map_record(fd, "configuration", CONFIG_MAGIC, sizeof(struct agent_config), e);
}

const struct agent_policy *
policy_map(int fd, struct err *e)
{
	return map_record(fd, "policy", POLICY_MAGIC, sizeof(struct agent_policy), e);
}
