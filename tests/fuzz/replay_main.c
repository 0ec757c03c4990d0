// SPDX-License-Identifier: Apache-2.0
/* replay_main.c: passes each file of a corpus to a fuzz target, without a fuzzer. Runs in:
 * tests. */
#include <dirent.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "tests/fuzz/fuzz.h"

static int
replay(int dir_fd, const char *name)
{
	cleanup_free char *text = NULL;
	cleanup_free uint8_t *exact = NULL;
	ssize_t n = fd_read_file(dir_fd, name, 4 << 20, &text);

	if (n < 0)
		return (int)n;
	/* A block of exactly that size, so that a sanitizer detects a read beyond it. */
	exact = malloc(n ? (size_t)n : 1);
	if (!exact)
		return -ENOMEM;
	memcpy(exact, text, (size_t)n);
	return LLVMFuzzerTestOneInput(exact, (size_t)n);
}

int
main(int argc, char **argv)
{
	cleanup_dir DIR *d = argc > 1 ? opendir(argv[1]) : NULL;
	struct dirent *entry;
	unsigned n = 0;

	if (!d) {
		fprintf(stderr, "no corpus: %s\n", argc > 1 ? argv[1] : "");
		return 1;
	}
	while ((entry = readdir(d))) {
		int r = entry->d_name[0] == '.' ? 0 : replay(dirfd(d), entry->d_name);

		if (r < 0) {
			fprintf(stderr, "%s: %s\n", entry->d_name, strerrordesc_np(-r));
			return 1;
		}
		n += entry->d_name[0] != '.';
	}
	printf("%u inputs\n", n);
	return n == 0;
}
