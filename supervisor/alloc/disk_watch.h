/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_watch.h: measures the directories of allocs that run every 30 s. An alloc with more than its
 * group's ephemeral_disk fails, and its event says how much it is. Where the file system enforces
 * the limit, an event reports once that the disk is full. Logs have limits of their own and are not
 * counted. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_DISK_WATCH_H
#define DROVER_SUPERVISOR_ALLOC_DISK_WATCH_H

#include "common/err.h"
#include "supervisor/core/sup.h"

int disk_watch_start(struct sup *sup, struct err *e);
void disk_watch_stop(struct sup *sup);

#endif
