/* SPDX-License-Identifier: Apache-2.0 */
/*
 * crash.h: named places where a test kills the process. Only a build with DROVER_CRASH_POINTS has
 * them; in any other build CRASH_POINT() does nothing. The environment variable DROVER_CRASH_PAGE,
 * which only such a build passes on, is the path of a file of uint32_t that the test creates. [0]
 * is the armed point (0: none; a hit disarms it), with the number of passes to skip in its upper 16
 * bits. [1 + n] counts how often point n was passed. If the uppermost bit of [0] is set, the
 * process does not die at the point: it sets [0] to 0xffff and waits until the test has killed the
 * processes of its choice and clears [0]. crash_points.def lists the points. Runs in: every
 * process.
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
void crash_init(void); /* called first in main: maps the page before any chroot or filter */
void crash_hit(enum crash_point point);
/* Returns "DROVER_CRASH_PAGE=…" for the environment of a child, or NULL. */
char *crash_env(void);
#define CRASH_AT(point) crash_hit(point)
#define CRASH_BUILD     1
#else
#define crash_init()    ((void)0)
#define crash_env()     ((char *)0)
#define CRASH_AT(point) ((void)0)
#define CRASH_BUILD     0
#endif
#define CRASH_POINT(name) CRASH_AT(CRASH_##name)

#endif
