/* SPDX-License-Identifier: Apache-2.0 */
/* hook_csi.h: what volumes report to the hook that mounts them. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_CSI_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_CSI_H

struct alloc_runner;

/* A volume that was still mounted after the tasks has been unmounted. */
void alloc_csi_volume_gone(struct alloc_runner *ar);

#endif
