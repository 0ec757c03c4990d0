/* SPDX-License-Identifier: Apache-2.0 */
/* check_memory.h: what checks keep from one probe to the next. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HEALTH_CHECK_MEMORY_H
#define DROVER_SUPERVISOR_HEALTH_CHECK_MEMORY_H

#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/health/clock_step.h"
#include "supervisor/health/probe.h"

LIST_HEAD(driver_checks, driver_check);
LIST_HEAD(hung_volumes, hung_volume);
LIST_HEAD(volume_checks, volume_check);
LIST_HEAD(probe_task_list, probe_task);

struct disk_check {
	struct check check;
	uint64_t call;
	struct sup_timer poll;
};

struct check_memory {
	/* check_disk.c */
	struct disk_check disk;
	/* check_node.c */
	struct clock_step clock;
	struct dirty row; /* that the check of state.db writes */
	struct check row_check;
	struct sup_timer row_poll;
	int64_t row_value;
	/* check_volumes.c */
	struct hung_volumes hung;
	struct volume_checks volumes; /* of the present probe */
	/* check_drivers.c: those with a task that runs */
	struct driver_checks drivers;
	/* probe_tasks.c */
	struct probe_task_list tasks;
};

void check_memory_begin(struct sup *sup);
void check_memory_end(struct sup *sup);

/* Returns whether the last check of the disk has found that it hangs: then nothing may be committed
 * for a probe. */
bool check_disk_hangs(struct sup *sup);
/* Remembers whether the file system of this component has hung. */
void check_volume_answered(struct sup *sup, const char *name, bool hung);
/* Returns whether it has hung and is not to be asked in this probe; that is reported then. */
bool check_volume_waits(struct sup *sup, const char *name);
void check_hung_volumes_forget(struct sup *sup);
void check_drivers_free(struct sup *sup);

#endif
