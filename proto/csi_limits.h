/* SPDX-License-Identifier: Apache-2.0 */
/* csi_limits.h: limits of the supervisor's requests to csi-helper, and of the answers. */
#ifndef DROVER_PROTO_CSI_LIMITS_H
#define DROVER_PROTO_CSI_LIMITS_H

/* In bytes. A request consists mainly of a volume's secrets, parameters and contexts. An answer may
 * be a list of volumes; 4 MiB is also the limit of plugins' own gRPC libraries. */
#define CSI_REQ_BYTES_MAX (1024 * 1024)
#define CSI_REP_BYTES_MAX (4 * 1024 * 1024)
/* Above this, a message goes in a memfd. */
#define CSI_INLINE_BYTES_MAX 61440
/* The longest a call may take: above it, whatever waits for the call would look stuck. */
#define CSI_TIMEOUT_MAX_MS (30 * 60 * 1000)

#endif
