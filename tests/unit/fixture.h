/* SPDX-License-Identifier: Apache-2.0 */
/* fixture.h: reads recorded bytes from tests/unit/fixtures/. Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_FIXTURE_H
#define DROVER_TESTS_UNIT_FIXTURE_H

#include <fcntl.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "tests/unit/unit.h"

/* Returns the size of the fixture; the caller frees *ret. */
static inline size_t
read_fixture(const char *name, char **ret)
{
	cleanup_close int dir = open(FIXTURES, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ssize_t n = fd_read_file(dir, name, 4096, ret);

	ck_assert_msg(n > 0, "%s: %zd", name, n);
	return (size_t)n;
}

#endif
