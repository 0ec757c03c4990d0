/* SPDX-License-Identifier: Apache-2.0 */
/* authorities.h: whom a machine believes over TLS, in a file of certificates. Runs in:
 * check-helper, which opens it, and supervisor, which looks whether it changes. */
#ifndef DROVER_AUTHORITIES_H
#define DROVER_AUTHORITIES_H

/* Where distributions keep it: Debian's, Fedora's, SUSE's, Alpine's. The first that is there. */
static const char *const authorities_places[] = { "/etc/ssl/certs/ca-certificates.crt",
	"/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/ca-bundle.pem", "/etc/ssl/cert.pem" };

#endif
