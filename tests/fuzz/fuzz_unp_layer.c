// SPDX-License-Identifier: Apache-2.0
/* fuzz_unp_layer.c: layers of images. Nothing is made outside of the layer's directory, and nothing
 * stays of one whose digest is wrong. Runs in: a fuzzer. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "image-unpacker/unp.h"
#include "tests/fuzz/fuzz.h"

#define NAME "0000000000000000000000000000000000000000000000000000000000000000"

static char top[] = "/tmp/fuzz-layer-XXXXXX";
static bool made;

static void
remove_top(void)
{
	int fd = open("/tmp", O_PATH | O_DIRECTORY | O_CLOEXEC);

	HOLDS(tree_remove_at(fd, strrchr(top, '/') + 1) == 0);
	(void)close(fd);
}

/* The fuzzer needs its own working directory in between. */
static int
enter_top(void)
{
	int home = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	HOLDS(home >= 0);
	if (!made) {
		HOLDS(mkdtemp(top) && chdir(top) == 0 && atexit(remove_top) == 0);
		HOLDS(mkdir("blobs", 0755) == 0 && mkdir("layers", 0755) == 0);
	}
	made = true;
	HOLDS(chdir(top) == 0);
	return home;
}

static size_t
count_files(const char *path)
{
	DIR *d = NULL;
	size_t n = 0;

	HOLDS(dir_open_at(AT_FDCWD, path, &d) == 0);
	while (dir_next(d))
		n++;
	(void)closedir(d);
	return n;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct unp_job job = {
		.blob = NAME, .layer = NAME, .max_bytes = 1 << 20, .max_files = 100
	};
	struct worker_result res = { .fd = -1 };
	struct err e = { 0 };
	int fd, home = enter_top();

	fd = open("blobs/" NAME, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	HOLDS(fd >= 0 && write(fd, data, size) == (ssize_t)size);
	(void)close(fd);
	HOLDS(unp_layer_unpack(-1, &job, &res, &e) < 0 && e.msg[0]);
	HOLDS(res.bytes <= job.max_bytes && res.files <= job.max_files + 1);
	HOLDS(count_files("layers") == 0 && count_files("blobs") == 1 && count_files(".") == 2);
	HOLDS(fchdir(home) == 0 && close(home) == 0);
	return 0;
}
