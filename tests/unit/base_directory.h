/* SPDX-License-Identifier: Apache-2.0 */
/* base_directory.h: a directory for each unit test, below the working directory, which the runner
 * makes. Runs in: unit tests. */
#ifndef DROVER_TESTS_UNIT_BASE_DIRECTORY_H
#define DROVER_TESTS_UNIT_BASE_DIRECTORY_H

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "tests/unit/unit.h"

static char base[] = "test_unit.XXXXXX";
static int base_fd = -1;

static inline void
make_base(void)
{
	(void)strcpy(base + sizeof base - 7, "XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(base));
	base_fd = open(base, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(base_fd, 0);
}

static inline void
remove_base(void)
{
	close_p(&base_fd);
	ck_assert_int_eq(tree_remove_at(AT_FDCWD, base), 0);
	ck_assert_int_lt(access(base, F_OK), 0);
}

#endif
