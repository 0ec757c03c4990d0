/* SPDX-License-Identifier: Apache-2.0 */
/* capability_check.h: compares the capabilities that a plugin confirms with the requested ones.
 * Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_VOLUME_CAPABILITY_CHECK_H
#define DROVER_SUPERVISOR_VOLUME_CAPABILITY_CHECK_H

#include "model/volume.h"
#include "proto/csi.pb-c.h"

/*
 * Checks an answer to ValidateVolumeCapabilities. One without `confirmed` and without a message
 * says nothing and counts as agreement, as for Nomad's clients; one with a message is a refusal.
 * Otherwise each requested capability of *asked must be among the confirmed ones, because an older
 * plugin may have skipped fields that it does not know. A confirmed capability that lacks the
 * access mode or type stands for all of them. Returns 0, or -EINVAL with the plugin's words.
 */
int capability_check(const struct csi_volume *asked,
    const Csi__V1__ValidateVolumeCapabilitiesResponse *rep, struct err *e);

#endif
