/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_ids.h: the user and group ids that containers have outside of their user namespaces.
 * Runs in: launcher, supervisor, exec-helper, executor, image-unpacker.
 *
 * Each range of CONTAINER_IDS ids is one user namespace: id 0 in it is the first of the range. The
 * files of all layers have the ids of the first range on disk; the only process with these ids is
 * image-unpacker. All files that containers write have those of the second; no process has these,
 * unless somebody runs a set-user-id program that a container left. So such a program reaches no
 * layer, and no process of a container. Each container has another range, unless it is privileged
 * or has the machine's ids.
 *
 * The ids are those that systemd leaves free between its own containers (524288 to 1879048191) and
 * the owners of foreign images (from 2147352576), without the groups of allocations
 * (alloc_group.h).
 */
#ifndef DROVER_PROTO_CONTAINER_IDS_H
#define DROVER_PROTO_CONTAINER_IDS_H

#define CONTAINER_IDS      65536u
#define CONTAINER_ID_FIRST 0x71000000u
#define CONTAINER_ID_LAST  0x7ffdffffu
#define CONTAINER_ID_FILES (CONTAINER_ID_FIRST + CONTAINER_IDS)
#define CONTAINER_RANGES   ((CONTAINER_ID_LAST - CONTAINER_ID_FIRST + 1) / CONTAINER_IDS)
/* Numbers of ranges that containers have: from this to CONTAINER_RANGES - 1. */
#define CONTAINER_RANGE_FIRST 2u
/* The number in the record of a container that has the machine's ids, and so no range. */
#define CONTAINER_RANGE_MACHINE 1u

#endif
