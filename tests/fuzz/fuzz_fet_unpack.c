// SPDX-License-Identifier: Apache-2.0
/*
 * fuzz_fet_unpack.c: archives; the first byte chooses the kind, the others are its contents. What
 * is made stays below the directory and its limits. Runs in: a fuzzer.
 */
#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "fetcher/fet_unpack.h"
#include "tests/fuzz/fuzz.h"

#define BYTES_MAX 65536
#define FILES_MAX 50

static char top[] = "/tmp/fuzz-unpack-XXXXXX";

static void
remove_top(void)
{
	(void)rmdir(top);
}

static int
open_top(void)
{
	static int fd = -1;

	if (fd < 0) {
		HOLDS(mkdtemp(top) != NULL);
		fd = open(top, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		HOLDS(fd >= 0 && atexit(remove_top) == 0);
	}
	return fd;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const names[] = { "tar", "zip", "tar.gz", "tar.xz", "tar.bz2", "tar.zst",
		"gz", "xz" };
	struct fet_progress told = { 0 };
	struct fet f = { .dir_fd = open_top(), .told = &told };
	struct err e = { 0 };
	const char *name;
	int fd;

	if (size < 1)
		return 0;
	name = names[data[0] & 7];
	f.spec.max_unpacked = BYTES_MAX;
	f.spec.max_files = FILES_MAX;
	fd = memfd_create("archive", MFD_CLOEXEC);
	HOLDS(fd >= 0 && write(fd, data + 1, size - 1) == (ssize_t)(size - 1));
	if (fet_unpack(&f, archive_kind_named(name), fd, (data[0] & 8) != 0, "out", &e) < 0)
		HOLDS(e.msg[0]);
	HOLDS(f.bytes <= BYTES_MAX && f.files <= FILES_MAX);
	(void)close(fd);
	HOLDS(tree_remove_at(f.dir_fd, "out") == 0);
	return 0;
}
