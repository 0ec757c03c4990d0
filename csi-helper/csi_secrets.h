/* SPDX-License-Identifier: Apache-2.0 */
/* csi_secrets.h: keeps the secrets of a request out of what the plugin says about it, because that
 * goes to logs, events and answers. Runs in: csi-helper. */
#ifndef DROVER_CSI_HELPER_CSI_SECRETS_H
#define DROVER_CSI_HELPER_CSI_SECRETS_H

#include <protobuf-c/protobuf-c.h>
#include <stddef.h>

/* Shorter values are not hidden: they are in many words by chance. */
#define CSI_SECRET_BYTES_MIN 4

/* The values, each with a NUL, one after the other. */
struct csi_secrets {
	char *values;
	size_t len;
};

/* Copies the values of the request's field `secrets`, if it has one, and those of mount flags whose
 * names say that they are credentials. Of a value with several lines, each counts. */
void csi_secrets_take(struct csi_secrets *ret, const ProtobufCMessage *req);
void csi_secrets_done(struct csi_secrets *s);

/* Copies text into ret, with "[REDACTED]" in place of each value, also of one whose quotes and
 * backslashes have a backslash before them, until its size bytes are full. Returns how many bytes
 * it has; there is no NUL. */
size_t csi_secrets_hide(
    const struct csi_secrets *s, const char *text, size_t len, char *ret, size_t size);

#endif
