// SPDX-License-Identifier: Apache-2.0
/* exe_record.c: the checksum of a run's record. Runs in: exec-helper, executor, supervisor. */
#include "common/exe_record.h"

uint64_t
exe_record_sum(const struct exe_record *r)
{
	const uint8_t *b = (const uint8_t *)r;
	uint64_t h = 0xcbf29ce484222325ull;

	for (size_t i = 0; i < offsetof(struct exe_record, sum); i++)
		h = (h ^ b[i]) * 0x100000001b3ull;
	return h;
}
