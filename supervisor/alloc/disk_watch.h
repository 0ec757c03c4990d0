/* SPDX-License-Identifier: Apache-2.0 */
/*
 * disk_watch.h: every 30 s, what the directories of the allocs that run take of the disk. One that
 * has more than its group's ephemeral_disk allows fails, and the event says how much it is. Where
 * the file system keeps it from that, an event says that the disk is full, once while it is. Logs
 * have limits of their own and are not counted. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_DISK_WATCH_H
#define DROVER_SUPERVISOR_ALLOC_DISK_WATCH_H

#include "common/err.h"
#include "supervisor/core/sup.h"

int disk_watch_start(struct sup *sup, struct err *e);
void disk_watch_stop(struct sup *sup);

#endif
