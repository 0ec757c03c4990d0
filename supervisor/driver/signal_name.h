/* SPDX-License-Identifier: Apache-2.0 */
/* signal_name.h: "SIGTERM" to 15. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_DRIVER_SIGNAL_NAME_H
#define DROVER_SUPERVISOR_DRIVER_SIGNAL_NAME_H

#include <signal.h>

/* With or without "SIG", any case; "" is SIGINT, Nomad's default. -1: there is none of that name.
 */
int signal_from_name(const char *name);

#endif
