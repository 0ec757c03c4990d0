// SPDX-License-Identifier: Apache-2.0
/* bench_task.c: the trivial task of the benchmarks: ends at once, or keeps running with any
 * argument; with "tick" it wakes up five times a second. Linked statically. */
#include <string.h>
#include <unistd.h>

int
main(int argc, char **argv)
{
	while (argc > 1)
		(void)(strcmp(argv[1], "tick") == 0 ? usleep(200000) : pause());
	return 0;
}
