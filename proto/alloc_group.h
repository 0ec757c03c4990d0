/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_group.h: the group of one alloc. Only this group can search the alloc's directory, and a
 * raw_exec task that is not root has it: so the task's user can use the paths of its directories,
 * and no other user of the machine can. The group needs no name. Runs in: supervisor, file-helper,
 * executor.
 */
#ifndef DROVER_PROTO_ALLOC_GROUP_H
#define DROVER_PROTO_ALLOC_GROUP_H

#include <stdbool.h>
#include <sys/types.h>

#include "proto/id_bytes.h"

/* A range that systemd's UIDS-GIDS leaves free for such uses. */
#define ALLOC_GROUP_FIRST 0x70000000u
#define ALLOC_GROUP_LAST  0x7ffffffeu

/* Returns the group of an alloc. An alloc's id is random: of 268 million pairs of allocs on one
 * machine, one pair shares a group. */
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
