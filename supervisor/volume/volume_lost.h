/* SPDX-License-Identifier: Apache-2.0 */
/* volume_lost.h: why a published volume is mounted again. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_LOST_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_LOST_H

/* The number is in the row of a mount. */
enum volume_lost {
	VOLUME_LOST_NOTHING,
	VOLUME_LOST_MOUNT,   /* somebody else had unmounted it */
	VOLUME_LOST_STAGING, /* somebody else had unmounted the staging directory only */
	VOLUME_LOST_SOURCE,  /* the process of its FUSE file system, or its device, is gone */
};

#endif
