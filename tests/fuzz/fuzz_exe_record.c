// SPDX-License-Identifier: Apache-2.0
/* fuzz_exe_record.c: any bytes as a run's record, also with a corrected checksum. */
#include <errno.h>
#include <string.h>

#include "common/exe_record.h"
#include "tests/fuzz/fuzz.h"

static void
try(const uint8_t *data, size_t size, const uint8_t *run)
{
	struct exe_record r;
	int n = exe_record_parse(data, size, run, &r);

	HOLDS(n == 0 || n == -EBADMSG);
	if (n < 0)
		return;
	HOLDS(size >= EXE_RECORD_SIZE && memcmp(r.run, run, sizeof r.run) == 0);
	HOLDS(memchr(r.boot_id, '\0', sizeof r.boot_id));
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exe_record r;
	uint8_t run[16];

	memset(run, 1, sizeof run);
	try(data, size, run);
	if (size < sizeof r)
		return 0;
	memcpy(&r, data, sizeof r);
	r.magic = EXE_RECORD_MAGIC;
	r.size = EXE_RECORD_SIZE;
	r.sum = exe_record_sum(&r);
	memcpy(run, r.run, sizeof run);
	try((const uint8_t *)&r, sizeof r, run);
	return 0;
}
