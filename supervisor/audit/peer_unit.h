/* SPDX-License-Identifier: Apache-2.0 */
/* peer_unit.h: the systemd unit and login session of a process, by its cgroup. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_AUDIT_PEER_UNIT_H
#define DROVER_SUPERVISOR_AUDIT_PEER_UNIT_H

#include <sys/types.h>

#define PEER_UNIT_SIZE 256

struct peer_unit {
	char unit[PEER_UNIT_SIZE];    /* "cron.service", "session-3.scope"; "": unknown */
	char session[PEER_UNIT_SIZE]; /* "3" of that scope; "": none */
};

/* Finds both in the text of /proc/<pid>/cgroup. Pure. */
struct peer_unit peer_unit_parse(const char *cgroups);
/* The same of a process; both are "" if it has ended. */
struct peer_unit peer_unit_of(pid_t pid);

#endif
