/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h: named places where a test kills the process. Only a build with DROVER_CRASH_POINTS has
 * them; in any other build CRASH_POINT() is nothing. The page is a file of uint32_t that the test
 * made: [0] the point that is armed (0 none; a hit disarms it), and in its upper half how many
 * passes are let go first; [1 + n] how often point n was passed. With the uppermost bit who comes
 * to the point does not die but waits there, [0] being 0xffff, until the test has killed whom it
 * wants and clears it. Its path comes by the environment variable DROVER_CRASH_PAGE, which only
 * such a build hands on. Points stand in crash_points.def. Runs in: every process.
 */
#ifndef DROVER_COMMON_CRASH_H
#define DROVER_COMMON_CRASH_H

enum crash_point {
	CRASH_NONE,
#define CRASH_DEF(name, text) CRASH_##name,
#define CRASH_ROW(name, text) CRASH_ROW_##name, CRASH_ROW_##name##_COMMITTED,
#include "common/crash_points.def"
#undef CRASH_DEF
#undef CRASH_ROW
	CRASH_POINTS
};

#ifdef DROVER_CRASH_POINTS
void crash_init(void); /* first thing in main: the page is mapped before any chroot or filter */
void crash_hit(enum crash_point point);
/* "DROVER_CRASH_PAGE=…" for the environment of a child, or NULL. */
char *crash_env(void);
#define CRASH_AT(point) crash_hit(point)
#define CRASH_BUILD     1
#else
static inline void
crash_init(void)
{
}
static inline char *
crash_env(void)
{
	return 0;
}
#define CRASH_AT(point) ((void)0)
#define CRASH_BUILD     0
#endif
#define CRASH_POINT(name) CRASH_AT(CRASH_##name)

#endif
