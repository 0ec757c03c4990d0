/* SPDX-License-Identifier: Apache-2.0 */
/* listen_config.h: the TCP addresses of the agent, as the launcher's configuration child checked
 * them, so that the launcher parses no text; and the files with certificates, keys and tokens. Runs
 * in: every process. */
#ifndef DROVER_PROTO_LISTEN_CONFIG_H
#define DROVER_PROTO_LISTEN_CONFIG_H

#include <stdint.h>

/* The files of the configuration whose contents unprivileged processes get, as sealed memfds. */
enum config_file {
	FILE_TLS_CA, /* tls { } */
	FILE_TLS_CERT,
	FILE_TLS_KEY,
	FILE_HEALTH_CA, /* health { tls { } } */
	FILE_HEALTH_CERT,
	FILE_HEALTH_KEY,
	FILE_HEALTH_TOKEN, /* health { token_file } */
	FILE_IMAGE_AUTH,   /* plugin "docker" { config { auth { config } } } */
	CONFIG_FILES
};

/* The kinds of requests that a TCP address answers. */
enum listen_use { LISTEN_HEALTH, LISTEN_API, LISTEN_USES };

struct config_listen {
	char text[64]; /* "127.0.0.1:4648", for messages */
	int32_t family;
	uint32_t len;         /* of the address; 0: none */
	uint8_t sockaddr[28]; /* struct sockaddr_in or sockaddr_in6 */
};

#endif
