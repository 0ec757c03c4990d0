// SPDX-License-Identifier: Apache-2.0
/* exe_record_parse.c: parses and checks the record of a run. Runs in: supervisor, exec-helper. */
#include <errno.h>
#include <string.h>

#include "common/exe_record.h"

int
exe_record_parse(const void *buf, size_t len, const uint8_t run[16], struct exe_record *ret)
{
	struct exe_record r;

	if (len < sizeof r)
		return -EBADMSG;
	memcpy(&r, buf, sizeof r);
	if (r.magic != EXE_RECORD_MAGIC || r.version < 1 || r.size != EXE_RECORD_SIZE ||
	    r.sum != exe_record_sum(&r) || memcmp(r.run, run, sizeof r.run) != 0)
		return -EBADMSG;
	r.boot_id[sizeof r.boot_id - 1] = '\0';
	*ret = r;
	return 0;
}
