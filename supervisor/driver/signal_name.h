/* SPDX-License-Identifier: Apache-2.0 */
/* signal_name.h: the number of a signal, from its name. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_SIGNAL_NAME_H
#define DROVER_SUPERVISOR_DRIVER_SIGNAL_NAME_H

#include <signal.h>

/* Takes names with or without "SIG", in any case; "" is SIGINT, Nomad's default. Returns -1 if
 * there is no such signal. */
int signal_from_name(const char *name);

#endif
