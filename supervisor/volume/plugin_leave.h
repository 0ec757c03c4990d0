/* SPDX-License-Identifier: Apache-2.0 */
/*
 * plugin_leave.h: which volumes a CSI plugin's task that is to stop still has to unmount on this
 * node. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_LEAVE_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_LEAVE_H

#include "common/id.h"
#include "supervisor/core/sup.h"

enum plugin_leave {
	PLUGIN_LEAVE_FREE,   /* nothing waits for this instance */
	PLUGIN_LEAVE_ENDED,  /* allocs that have ended have volumes of it */
	PLUGIN_LEAVE_ENDING, /* as above, and some of these allocs have not ended yet */
};

/* Returns which other allocs that are to end have volumes that only this plugin's instance in alloc
 * can unmount. Volumes of allocs that go on do not count. */
enum plugin_leave plugin_leave(struct sup *sup, const char *plugin, const struct id *alloc);

#endif
