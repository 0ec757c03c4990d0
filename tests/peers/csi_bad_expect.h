/* SPDX-License-Identifier: Apache-2.0 */
/* csi_bad_expect.h: checks that requests have the secrets and mount options that the id of their
 * volume promises. Runs in: tests. */
#ifndef DROVER_TESTS_PEERS_CSI_BAD_EXPECT_H
#define DROVER_TESTS_PEERS_CSI_BAD_EXPECT_H

#include <stddef.h>
#include <stdint.h>

/*
 * Returns what is wrong with a request, in one sentence, or NULL. A request that has secrets must
 * have only key="secret of VOLUME"; a capability of a file system must have the type "storm" and
 * mount flags that end with "-VOLUME", of which NodeExpandVolume has none.
 */
const char *bad_check_request(
    const char *method, const char *volume, const uint8_t *data, size_t len);

#endif
