/* SPDX-License-Identifier: Apache-2.0 */
/* hook_csi.h: what volumes report to the hook that mounts them. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_ALLOC_HOOK_CSI_H
#define DROVER_SUPERVISOR_ALLOC_HOOK_CSI_H

struct id;
struct sup;

/* A volume of an alloc is mounted no more: its claim is given back. */
void alloc_csi_volume_gone(struct sup *sup, const struct id *alloc, const char *alias);

#endif
