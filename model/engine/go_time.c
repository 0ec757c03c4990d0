/* SPDX-License-Identifier: Apache-2.0 */
/* go_time.c: times in Go's binary format: a version, seconds since the year 1, nanoseconds, the
 * zone's minutes. Runs in: supervisor. */
#include <string.h>

#include "common/duration.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

#define VERSION        1
#define VERSION_ZONE_S 2                    /* a zone with seconds, which has one byte more */
#define YEAR_1_S       INT64_C(62135596800) /* before 1970 */
#define ZONE_UTC       0xffff

static void
put_bytes(uint8_t *p, uint64_t value, size_t n)
{
	while (n--) {
		p[n] = (uint8_t)value;
		value >>= 8;
	}
}

static uint64_t
get(const uint8_t *p, size_t n)
{
	uint64_t v = 0;

	while (n--)
		v = v << 8 | *p++;
	return v;
}

void
go_time_format(int64_t ns, uint8_t ret[GO_TIME_SIZE])
{
	int64_t seconds = ns / NS_PER_S, rest = ns % NS_PER_S;

	if (rest < 0) {
		rest += NS_PER_S;
		seconds--;
	}
	ret[0] = VERSION;
	put_bytes(ret + 1, ns ? (uint64_t)(seconds + YEAR_1_S) : 0, 8);
	put_bytes(ret + 9, (uint64_t)rest, 4);
	put_bytes(ret + 13, ZONE_UTC, 2);
}

/* Years outside the range of 64 bits of nanoseconds become the lowest or highest time. */
bool
go_time_parse(const void *data, size_t len, int64_t *ret_ns)
{
	const uint8_t *p = data;
	int64_t since_year_1, seconds, rest;

	if (!((len == GO_TIME_SIZE && p[0] == VERSION) ||
		(len == GO_TIME_SIZE + 1 && p[0] == VERSION_ZONE_S)))
		return false;
	since_year_1 = (int64_t)get(p + 1, 8);
	rest = (int64_t)get(p + 9, 4);
	if (rest >= NS_PER_S)
		return false;
	if (since_year_1 == 0 && rest == 0) {
		*ret_ns = 0;
		return true;
	}
	if (__builtin_sub_overflow(since_year_1, YEAR_1_S, &seconds) ||
	    __builtin_mul_overflow(seconds, NS_PER_S, ret_ns) ||
	    __builtin_add_overflow(*ret_ns, rest, ret_ns))
		*ret_ns = since_year_1 < YEAR_1_S ? -INT64_MAX : INT64_MAX;
	return true;
}
