// SPDX-License-Identifier: Apache-2.0
/* run_ranges.c: the ranges of ids that containers have. Runs in: supervisor. */
#include "supervisor/driver/run_ranges.h"

#include <dirent.h>
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/exe_record.h"
#include "common/path.h"
#include "supervisor/driver/run_result.h"

bool
run_range_take(struct run_ranges *ranges, uint32_t range)
{
	if (range < CONTAINER_RANGE_FIRST || range >= CONTAINER_RANGES)
		return false;
	ranges->bits[range / 64] |= 1ull << range % 64;
	return true;
}

void
run_range_free(struct run_ranges *ranges, uint32_t range)
{
	if (range < CONTAINER_RANGES)
		ranges->bits[range / 64] &= ~(1ull << range % 64);
}

uint32_t
run_range_find(struct run_ranges *ranges)
{
	for (uint32_t range = CONTAINER_RANGE_FIRST; range < CONTAINER_RANGES; range++)
		if (!(ranges->bits[range / 64] >> range % 64 & 1)) {
			(void)run_range_take(ranges, range);
			return range;
		}
	return 0;
}

int
run_ranges_read(struct run_ranges *ranges, int records_fd, const char *boot_id,
    bool (*is_known)(void *arg, const struct id *run), void *arg, struct err *e)
{
	cleanup_dir DIR *d = NULL;
	int r = dir_open_at(records_fd, ".", &d);
	const char *name;

	if (r < 0)
		return err_set(e, r, "read the directory of runs");
	while ((name = dir_next(d))) {
		struct exe_record rec;
		struct id run;
		char hex[ID_HEX_SIZE];

		if (strlen(name) != ID_HEX_SIZE - 1 + strlen(".rec"))
			continue;
		memcpy(hex, name, ID_HEX_SIZE - 1);
		hex[ID_HEX_SIZE - 1] = '\0';
		if (id_from_hex(hex, &run) && !is_known(arg, &run) &&
		    run_result_read(records_fd, &run, &rec) == 0 &&
		    strcmp(rec.boot_id, boot_id) == 0)
			(void)run_range_take(ranges, rec.id_range);
	}
	return errno ? err_set(e, -errno, "read the directory of runs") : 0;
}
