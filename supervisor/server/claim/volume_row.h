/* SPDX-License-Identifier: Apache-2.0 */
/* volume_row.h: the row of a volume, in which its secrets and the publish contexts of its claims
 * are sealed. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_VOLUME_ROW_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_VOLUME_ROW_H

#include <stdbool.h>

#include "model/volume.h"
#include "supervisor/core/seal.h"

struct store;
struct store_row;

/* Writes the row of *vol. *unread are its sealed secrets if they cannot be opened: they stay in the
 * row as long as vol->secrets_lost. Returns 0 or -errno. */
int volume_row_put(struct store *store, struct seal *seal, const struct csi_volume *vol,
    struct sealed *unread, struct err *e);
/*
 * Decodes a row of STMT_VOLUME_ALL into an initialised *ret. Without the key its secrets stay in
 * *ret_unread, and the volume is as if its attachments had begun, so that the next attachment gives
 * its context again. Sets *ret_clear if an earlier version has written secrets that are not sealed.
 * Returns 0 or -errno.
 */
int volume_row_get(const struct store_row *row, const struct seal *seal, struct csi_volume *ret,
    struct sealed *ret_unread, bool *ret_clear, struct err *e);

#endif
