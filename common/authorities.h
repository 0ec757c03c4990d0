/* SPDX-License-Identifier: Apache-2.0 */
/* authorities.h: where the machine's trusted CA certificates are. Runs in: check-helper, which
 * reads that file, and supervisor, which checks whether it has changed. */
#ifndef DROVER_COMMON_AUTHORITIES_H
#define DROVER_COMMON_AUTHORITIES_H

/* The paths of Debian, Fedora, SUSE and Alpine; the first one that exists is used. */
static const char *const authorities_places[] = { "/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };

#endif
