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

#define LISTEN_FDS_TCP 2

/*
 * Takes the listening stream sockets that systemd passed (sd_listen_fds(3)) as CLOEXEC descriptors,
 * which the caller closes: at most one unix socket, and LISTEN_FDS_TCP sockets of IPv4 or IPv6. A
 * place without a socket gets -1. Returns 0, or -EINVAL with *e if a socket is one too many or of
 * another kind. Clears LISTEN_* in any case.
 */
int listen_fds_take(int *ret_unix, int ret_tcp[LISTEN_FDS_TCP], struct err *e);

#endif
