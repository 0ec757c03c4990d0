// SPDX-License-Identifier: Apache-2.0
/* fuzz_exe_request.c: any bytes as a peer's message to an executor, and as the spec of its task. */
/* link: executor */
#include <errno.h>
#include <string.h>

#include "executor/exe_start.h"
#include "tests/fuzz/fuzz.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct exe_request r = { 0 };
	struct exe_spec s = { 0 };
	int n = exe_request_parse(data, size, &r);

	HOLDS(n == 0 || n == -EBADMSG);
	HOLDS(n < 0 || (r.type >= EXE_SIGNAL && r.type <= EXE_LEASE && r.signal <= 64));
	n = exe_spec_read(data, size, &s);
	HOLDS(n == 0 || n == -EBADMSG);
	if (n < 0)
		return 0;
	/* A session for files has no command. */
	HOLDS(!s.command || strlen(s.command) < size);
	return 0;
}
