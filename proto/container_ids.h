/* SPDX-License-Identifier: Apache-2.0 */
/*
 * container_ids.h: the user and group ids that containers have outside of their user namespaces.
 * Runs in: launcher, exec-helper, executor.
 *
 * Each range of CONTAINER_IDS ids is one user namespace: id 0 in it is the first of the range. The
 * first range belongs to image-unpacker: the files of all layers have its ids on disk, and so have
 * all files that containers write, so that root of an image is nobody on this machine. The ids are
 * those between the ranges that systemd reserves (524288 to 1879048191 for its own containers) and
 * those that are negative as 32-bit numbers.
 */
#ifndef DROVER_PROTO_CONTAINER_IDS_H
#define DROVER_PROTO_CONTAINER_IDS_H

#define CONTAINER_IDS      65536u
#define CONTAINER_ID_FIRST 1879048192u
/* Numbers of ranges that containers have: 1 to CONTAINER_RANGES - 1. */
#define CONTAINER_RANGES ((2147483648u - CONTAINER_ID_FIRST) / CONTAINER_IDS)

#endif
