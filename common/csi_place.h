/* SPDX-License-Identifier: Apache-2.0 */
/*
 * csi_place.h: paths of CSI plugins and volumes below csi/ in the data directory. Runs in:
 * mount-helper, file-helper.
 * 	<kind>/<plugin>					the root of a plugin
 * 	    staging/<volume>/<usage>			a staged volume
 * 	    per-alloc/<alloc>/<volume>/<usage>		a published volume
 */
#ifndef DROVER_COMMON_CSI_PLACE_H
#define DROVER_COMMON_CSI_PLACE_H

#include "common/err.h"
#include "common/id.h"
#include "proto/ipc_records.h"

#define CSI_KINDS     plugin_kind_values /* PLUGIN_NONE has no directory */
#define CSI_ROOT_SIZE (sizeof "controller/" + IPC_NAME_SIZE)
#define CSI_DIR_SIZE  (sizeof "per-alloc/" + ID_UUID_SIZE + IPC_NAME_SIZE)

extern const char *const csi_kind_dirs[CSI_KINDS];

struct csi_place {
	char root[CSI_ROOT_SIZE];    /* "node/p", below csi/ */
	char dir[CSI_DIR_SIZE];      /* "staging/v", below the root */
	const char *volume, *plugin; /* strings of the request */
	const char *leaf; /* name in dir where the volume is mounted; points into the request */
	bool is_staging;
};

/* Writes "node/name" to ret. Returns 0, or -EINVAL with *e if the kind has no directory or the name
 * cannot be a path component. */
int csi_root_path(
    enum plugin_kind kind, const char *plugin, char ret[CSI_ROOT_SIZE], struct err *e);
/* Returns 0, or -EINVAL with *e if v is not a valid place. The strings of *ret point into v. */
int csi_place_read(const struct volume_place *v, struct csi_place *ret, struct err *e);

#endif
