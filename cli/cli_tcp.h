/* SPDX-License-Identifier: Apache-2.0 */
/* cli_tcp.h: connections to an agent over TCP: http://host:port and https://host:port. Runs in:
 * cli.
 */
#ifndef DROVER_CLI_CLI_TCP_H
#define DROVER_CLI_CLI_TCP_H

#include <stdbool.h>

#include "common/err.h"

/* Of -ca-cert, -client-cert, -client-key and -tls-server-name, or of the environment. */
struct cli_tls {
	const char *ca_cert, *client_cert, *client_key, *server_name;
};
extern struct cli_tls cli_tls;

/* Takes what no flag sets from DROVER_CACERT, DROVER_CLIENT_CERT, DROVER_CLIENT_KEY and
 * DROVER_TLS_SERVER_NAME, or from Nomad's variables of these names. */
void cli_tls_from_environment(void);
/* Returns whether the address has one of the two forms. */
bool cli_is_tcp(const char *address);
/* Connects. With https the descriptor is one end of a socket pair: a child of this process passes
 * the bytes on in TLS until one side ends, so that they can be read and waited for like those of a
 * unix socket. Returns a descriptor, or -errno with a sentence. */
int cli_tcp_connect(const char *address, struct err *e);

#endif
