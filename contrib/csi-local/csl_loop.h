/* SPDX-License-Identifier: Apache-2.0 */
/* csl_loop.h: loop devices of the files of block volumes. Runs in: drover-csi-local, with
 * CAP_SYS_ADMIN. */
#ifndef DROVER_CONTRIB_CSI_LOCAL_CSL_LOOP_H
#define DROVER_CONTRIB_CSI_LOCAL_CSL_LOOP_H

#include <stdbool.h>
#include <sys/types.h>

#include "common/err.h"

/*
 * The devices of a file are found by its device and inode numbers, so nothing about them is lost
 * when the plugin is killed or the machine boots. file_fd is open for reading and writing.
 */

/* Returns a device of the file, which is attached unless one is there: *ret is its number. Readers
 * have one of their own, which cannot write. */
int csl_loop_attach(int file_fd, bool readonly, dev_t *ret, struct err *e);
/* Detaches all devices of the file; one that is still open is detached when it is closed. */
int csl_loop_detach(int file_fd, struct err *e);
/* Gives all devices of the file its current size. */
int csl_loop_resize(int file_fd, struct err *e);
/* Writes what was written to the devices of the file to the file. */
int csl_loop_sync(int file_fd, struct err *e);
/* Opens the node of a device with O_PATH. The caller closes it. */
int csl_loop_open(dev_t device, struct err *e);

#endif
