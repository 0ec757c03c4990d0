/* SPDX-License-Identifier: Apache-2.0 */
/* sd.h: what a process needs of systemd without linking libsystemd. Runs in: launcher. */
#ifndef DROVER_COMMON_SD_H
#define DROVER_COMMON_SD_H

#include "common/err.h"

/*
 * Sends state ("STOPPING=1") to $NOTIFY_SOCKET, as sd_notify(3) does. 1 sent, 0 nobody to tell,
 * -errno. Newlines separate assignments.
 */
int notify_send(const char *state);

/*
 * The one listening unix stream socket that systemd handed over (sd_listen_fds(3)): a descriptor,
 * CLOEXEC, the caller's to close. -ENOENT if there is none; -EINVAL with *e for more than one, or
 * for another kind. Clears LISTEN_* in any case.
 */
int listen_fd_take(struct err *e);

#endif
