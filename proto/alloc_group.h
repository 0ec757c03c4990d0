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

#include "proto/container_ids.h"
#include "proto/id_bytes.h"

/* A range that systemd's UIDS-GIDS leaves free for such uses. */
#define ALLOC_GROUP_FIRST    0x70000000u
#define ALLOC_GROUP_LAST     0x70ffffffu
#define ALLOC_GROUP_LAST_OLD 0x7ffffffeu /* of allocs that an earlier version made */

_Static_assert(ALLOC_GROUP_LAST < CONTAINER_ID_FIRST, "no container has the group of an alloc");

static inline gid_t
alloc_group_up_to(const struct id *alloc, gid_t last)
{
	uint32_t n = (uint32_t)alloc->b[0] << 24 | (uint32_t)alloc->b[1] << 16 |
		     (uint32_t)alloc->b[2] << 8 | alloc->b[3];

	return ALLOC_GROUP_FIRST + n % (last - ALLOC_GROUP_FIRST + 1);
}

/* Returns the group of an alloc. An alloc's id is random: of 17 million pairs of allocs on one
 * machine, one pair shares a group. */
static inline gid_t
alloc_group(const struct id *alloc)
{
	return alloc_group_up_to(alloc, ALLOC_GROUP_LAST);
}

/* Is it the group of this alloc, or was it in an earlier version? Its tasks may still have that. */
static inline bool
is_alloc_group(const struct id *alloc, gid_t gid)
{
	return gid == alloc_group(alloc) || gid == alloc_group_up_to(alloc, ALLOC_GROUP_LAST_OLD);
}

#endif
