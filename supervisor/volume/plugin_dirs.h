/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_dirs.h: removes the directories of a plugin. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_PLUGIN_DIRS_H
#define DROVER_SUPERVISOR_PLUGIN_DIRS_H

#include "common/id.h"
#include "model/task.h"
#include "supervisor/core/sup.h"

/*
 * Removes csi/sock/<alloc> and, unless another alloc's task is to be the plugin or volumes are
 * mounted by it, the plugin's root: mount-helper unmounts it, which it refuses while the root holds
 * a volume, and file-helper removes it. A failure is logged.
 */
void plugin_dirs_remove(
    struct sup *sup, const struct id *alloc, enum csi_plugin_kind kind, const char *plugin);

#endif
