// SPDX-License-Identifier: Apache-2.0
/* fuzz_payload.c: any bytes as a payload in Snappy's format; a decoded one is encoded and decoded
 * again. */
#include <string.h>

#include "model/payload.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static uint8_t out[PAYLOAD_MAX], packed[PAYLOAD_PACKED_SIZE(PAYLOAD_MAX)],
	    again[PAYLOAD_MAX];
	size_t len, n;

	if (payload_unpack(data, size, out, &len) < 0)
		return 0;
	HOLDS(len <= PAYLOAD_MAX);
	n = payload_pack(out, len, packed);
	HOLDS(n <= PAYLOAD_PACKED_SIZE(len));
	HOLDS(payload_unpack(packed, n, again, &n) == 0 && n == len && memcmp(out, again, n) == 0);
	return 0;
}
