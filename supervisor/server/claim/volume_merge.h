/* SPDX-License-Identifier: Apache-2.0 */
/* volume_merge.h: what a volume becomes when it is registered again: rules over struct csi_volume,
 * without effects. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_VOLUME_MERGE_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_VOLUME_MERGE_H

#include "model/volume.h"

/*
 * Puts into *vol, a request for the volume *has, what answers of the API do not show: its secrets,
 * unless secrets_given (the request has an object Secrets), and each secret and mount flag whose
 * value is "[REDACTED]". An empty context becomes that of *has.
 */
void volume_keep_hidden(const struct csi_volume *has, bool secrets_given, struct csi_volume *vol);
/*
 * Completes *vol, a request for which volume_keep_hidden() was called, to what *has becomes. Empty
 * fields that cannot change are kept. Returns 0; -EEXIST naming a field that cannot change; -EBUSY
 * naming one that cannot change while the volume is in use. *vol is then changed in part.
 */
int volume_merge(const struct csi_volume *has, struct csi_volume *vol, struct err *e);

#endif
