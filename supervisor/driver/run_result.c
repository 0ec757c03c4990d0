// SPDX-License-Identifier: Apache-2.0
/* run_result.c: reads the record of a run. Runs in: supervisor. */
#include "supervisor/driver/run_result.h"

#include <fcntl.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exe_record.h"
#include "common/fd.h"

int
run_result_read(int records_fd, const struct id *run, struct exe_record *ret)
{
	char name[ID_HEX_SIZE + 4];
	uint8_t buf[EXE_RECORD_SIZE];
	cleanup_close int fd = -1;
	ssize_t n;

	id_to_hex(run, name);
	(void)strcpy(name + ID_HEX_SIZE - 1, ".rec");
	fd = fd_open_beneath(records_fd, name, O_RDONLY, 0);
	if (fd < 0)
		return fd;
	n = fd_read_full(fd, buf, sizeof buf);
	return n < 0 ? (int)n : exe_record_parse(buf, (size_t)n, run->b, ret);
}

struct run_end
run_result_end(const struct exe_record *rec)
{
	return (struct run_end){ .known = !(rec->flags & EXE_END_UNKNOWN),
		.flags = rec->flags,
		.exit_code = rec->exit_code,
		.exit_signal = rec->exit_signal,
		.ended_real_ns = rec->ended_real_ns,
		.lease_limit_ms = rec->lease_limit_ms,
		.lease_last_ok_ns = rec->lease_last_ok_ns,
		.lease_late_ns = rec->lease_late_ns };
}
