/* SPDX-License-Identifier: Apache-2.0 */
/* id_bytes.h: a 128-bit id in messages and records (functions: common/id.h). Runs in: every
 * process. */
#ifndef DROVER_PROTO_ID_BYTES_H
#define DROVER_PROTO_ID_BYTES_H

#include <stdint.h>

#define ID_BYTES 16

struct id {
	uint8_t b[ID_BYTES];
};

#endif
