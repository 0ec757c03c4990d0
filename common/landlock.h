/* SPDX-License-Identifier: Apache-2.0 */
/* landlock.h: what files a process and the programs that it runs may use, by Landlock (kernel 5.13;
 * version 2, which these rules need, is 5.19). Runs in: fetcher, image-fetcher. */
#ifndef DROVER_COMMON_LANDLOCK_H
#define DROVER_COMMON_LANDLOCK_H

#include <linux/landlock.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define LANDLOCK_READ_FILE LANDLOCK_ACCESS_FS_READ_FILE
#define LANDLOCK_READ      (LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR)
#define LANDLOCK_RUN       (LANDLOCK_READ | LANDLOCK_ACCESS_FS_EXECUTE)
#define LANDLOCK_WRITE                                                                             \
	(LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR |                           \
	    LANDLOCK_ACCESS_FS_REMOVE_FILE | LANDLOCK_ACCESS_FS_MAKE_DIR |                         \
	    LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SYM | LANDLOCK_ACCESS_FS_REFER)

/* Begins a set of rules under which everything is denied. Returns its descriptor, -ENOSYS if the
 * kernel has no Landlock of that version, or another -errno with *e. */
int landlock_new(struct err *e);
/* Permits `access` to the file, or to what is below the directory. Return 0, also if this process
 * finds no such path, or -errno with *e. */
int landlock_permit(int rules_fd, const char *path, uint64_t access, struct err *e);
int landlock_permit_fd(int rules_fd, int fd, uint64_t access, struct err *e);
/* Permits what a program from Debian needs that uses the network: programs, libraries, names of
 * hosts and users, certificates. */
int landlock_permit_network_programs(int rules_fd, struct err *e);
/* Applies the rules to this process and its children, for ever. Returns 0, or -errno with *e. */
int landlock_enforce(int rules_fd, struct err *e);

#endif
