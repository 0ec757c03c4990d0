// SPDX-License-Identifier: Apache-2.0
/* bench_task.c: the trivial task of the benchmarks: ends at once, or keeps running with any
 * argument. Linked statically. */
#include <unistd.h>

int
main(int argc, char **argv)
{
	(void)argv;
	while (argc > 1)
		(void)pause();
	return 0;
}
