/* SPDX-License-Identifier: Apache-2.0 */
/* sd.h: systemd's protocols for a process that does not link libsystemd. Runs in: launcher. */
#ifndef DROVER_COMMON_SD_H
#define DROVER_COMMON_SD_H

#include "common/err.h"

/*
 * Sends state ("STOPPING=1") to $NOTIFY_SOCKET, as sd_notify(3) does; newlines separate
 * assignments. Returns 1, 0 if the variable is not set, or -errno.
 */
int notify_send(const char *state);

/*
 * Returns the one listening unix stream socket that systemd passed (sd_listen_fds(3)) as a CLOEXEC
 * descriptor, which the caller closes. -ENOENT if there is none; -EINVAL with *e if there are
 * several or it is of another kind. Clears LISTEN_* in any case.
 */
int listen_fd_take(struct err *e);

#endif
