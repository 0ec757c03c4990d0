// SPDX-License-Identifier: Apache-2.0
/* fet_slow.c: slow transfers, which are given up while other artifacts wait. Runs in: fetcher and
 * its workers. */
#include "fetcher/fet_slow.h"

#include <errno.h>

#include "fetcher/fet.h"

bool
fet_pace_is_slow(struct fet_pace *pace, const struct fet_progress *told, uint64_t now_ms,
    uint32_t slow_ms, uint64_t *ret_rate)
{
	const uint64_t bytes = told->bytes, ms = now_ms - pace->since_ms;
	/* A second try begins with no bytes. */
	const uint64_t arrived = bytes > pace->bytes ? bytes - pace->bytes : 0;

	if (ms < slow_ms || ms == 0)
		return false;
	*ret_rate = arrived * 1000 / ms;
	if (told->transfers && *ret_rate < FET_SLOW_RATE)
		return true;
	*pace = (struct fet_pace){ now_ms, bytes };
	return false;
}

int
fet_say_slow(struct err *e)
{
	return err_say(e, -EBUSY,
	    "the server sends less than %d KiB a second, while other artifacts wait",
	    FET_SLOW_RATE >> 10);
}
