/* SPDX-License-Identifier: Apache-2.0 */
/* plugin_dirs.h: removes the directories of a plugin. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_PLUGIN_DIRS_H
#define DROVER_SUPERVISOR_VOLUME_PLUGIN_DIRS_H

#include "common/id.h"
#include "model/task.h"
#include "supervisor/core/sup.h"

/* Returns true if volumes are mounted by this plugin, or a task is or will be it; except: an alloc
 * whose tasks do not count, or NULL. */
bool plugin_root_is_wanted(
    struct sup *sup, enum csi_plugin_kind kind, const char *plugin, const struct id *except);
/* Removes csi/sock/<alloc>. A failure is logged. */
void plugin_socket_dir_remove(struct sup *sup, const struct id *alloc);
/*
 * Removes csi/sock/<alloc> and the plugin's root. mount-helper unmounts the root, which it refuses
 * while a volume is mounted in it, and file-helper removes it. The root is kept if a task of
 * another alloc is or will be the plugin, or if volumes are mounted by it; the socket's directory
 * is removed all the same. A failure is logged.
 */
void plugin_dirs_remove(
    struct sup *sup, const struct id *alloc, enum csi_plugin_kind kind, const char *plugin);

#endif
