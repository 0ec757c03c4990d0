/* SPDX-License-Identifier: Apache-2.0 */
/* csl_copy.h: copies a volume's data. Runs in: drover-csi-local. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_COPY_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_COPY_H

#include "common/err.h"

/*
 * Copies the file or the tree `from` to the new name `to`: modes, owners, times, user attributes
 * and ACLs, links, fifos and sockets; as reflinks where the file system has them, and with holes.
 * Links between files become copies; other mounts are not entered. A file that a task changes
 * meanwhile is copied as it is read. What was copied before a failure stays, for the caller to
 * remove. -EPERM without CAP_CHOWN for files of other users, and for device nodes.
 */
int csl_copy_at(int from_fd, const char *from, int to_fd, const char *to, struct err *e);

#endif
