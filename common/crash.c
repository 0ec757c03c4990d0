// SPDX-License-Identifier: Apache-2.0
/* crash.c: named places where a test kills the process. Runs in: every process of a test build. */
#include "common/crash.h"

#ifdef DROVER_CRASH_POINTS
#include <fcntl.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

/* Tests find the list in the binary, and refuse one that was built with another list. */
#define CRASH_DEF(name, text) #name ","
#define CRASH_ROW(name, text) CRASH_DEF(ROW_##name, text) CRASH_DEF(ROW_##name##_COMMITTED, text)
__attribute__((used, retain)) static const char points[] = "crash points:"
#include "common/crash_points.def"
    ;
#undef CRASH_DEF
#undef CRASH_ROW

static _Atomic uint32_t *page;
static char *env;

void
crash_init(void)
{
	const char *path = getenv("DROVER_CRASH_PAGE");
	int fd = path ? open(path, O_RDWR | O_CLOEXEC) : -1;
	void *map;

	if (fd < 0)
		return;
	map = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	(void)close(fd);
	if (map == MAP_FAILED)
		return;
	page = map;
	for (char **at = environ; *at && !env; at++)
		if (path == *at + sizeof "DROVER_CRASH_PAGE=" - 1)
			env = *at;
}

char *
crash_env(void)
{
	return env;
}

#define HOLD 0x8000 /* in the upper 16 bits of page[0] */
#define HELD 0xffff

static uint32_t
after(uint32_t armed)
{
	if (armed >> 16 & ~HOLD)
		return armed - 0x10000;
	return armed >> 16 ? HELD : CRASH_NONE;
}

/* Uses _exit() and not a signal: pid 1 of a pid namespace is immune to its own signals, and all
 * filters allow exit_group. */
void
crash_hit(enum crash_point point)
{
	uint32_t armed;

	if (!page)
		return;
	atomic_fetch_add(&page[1 + point], 1);
	do {
		armed = atomic_load(&page[0]);
		if ((armed & 0xffff) != point)
			return;
	} while (!atomic_compare_exchange_weak(&page[0], &armed, after(armed)));
	if (armed >> 16 == 0)
		_exit(137);
	if (armed >> 16 == HOLD)
		while (atomic_load(&page[0]) == HELD)
			; /* busy wait: needs no system call that a filter would have to allow */
}
#endif
