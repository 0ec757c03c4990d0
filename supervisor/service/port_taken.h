/* SPDX-License-Identifier: Apache-2.0 */
/* port_taken.h: whether a program of the machine already has a port that a network would publish.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVICE_PORT_TAKEN_H
#define DROVER_SUPERVISOR_SERVICE_PORT_TAKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

/* A port that would be published, for tcp and for udp. */
struct port_wanted {
	const char *label;
	const char *ip; /* of the machine; "": each of its addresses */
	uint32_t port;
};

/*
 * Compares n ports with the sockets of this machine that get new connections: those of tcp that
 * listen, and those of udp that are not connected. Connections, also those in TIME_WAIT, do not
 * count. ipv6: whether the ports would be published for IPv6, too. Returns 0 if all are free;
 * -EADDRINUSE with *e for the first one that is not; another -errno with *e if the kernel does not
 * say.
 */
int port_check_free(const struct port_wanted *wanted, size_t n, bool ipv6, struct err *e);

#endif
