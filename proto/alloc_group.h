/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_group.h: the group of one alloc alone. Its directory is searchable by this group and by
 * nobody else, and a raw_exec task that is not root has it: so the task's user finds its
 * directories by their paths, and no other user of the machine does. Nobody needs to know the
 * group's name.
 */
#ifndef DROVER_PROTO_ALLOC_GROUP_H
#define DROVER_PROTO_ALLOC_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/id_bytes.h"

/* Free for uses like this one (systemd's UIDS-GIDS). */
#define ALLOC_GROUP_FIRST 0x70000000u
#define ALLOC_GROUP_LAST  0x7ffffffeu

/* An alloc's id is random: two on one machine have the same group once in 268 million pairs. */
static inline gid_t
alloc_group(const struct id *alloc)
{
	uint32_t n = (uint32_t)alloc->b[0] << 24 | (uint32_t)alloc->b[1] << 16 |
		     (uint32_t)alloc->b[2] << 8 | alloc->b[3];

	return ALLOC_GROUP_FIRST + n % (ALLOC_GROUP_LAST - ALLOC_GROUP_FIRST + 1);
}

static inline bool
is_alloc_group(gid_t gid)
{
	return gid >= ALLOC_GROUP_FIRST && gid <= ALLOC_GROUP_LAST;
}

#endif
