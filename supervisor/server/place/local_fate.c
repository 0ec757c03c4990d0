// SPDX-License-Identifier: Apache-2.0
/* local_fate.c: whether an alloc is replaced, as a function of facts. Runs in: supervisor. */
#include "supervisor/server/place/local_fate.h"

enum local_fate
local_fate_decide(const struct local_fate_facts *f)
{
	if (!f->current)
		return LOCAL_FATE_NONE;
	if (f->unplaced)
		return LOCAL_FATE_UNPLACED;
	if (f->wanted && f->failed) {
		if (f->reschedules)
			return LOCAL_FATE_LATER;
		if (f->system)
			return LOCAL_FATE_NEVER_TYPE;
		return f->policy ? LOCAL_FATE_NEVER_AGAIN : LOCAL_FATE_NEVER_RULE;
	}
	if (!f->waits)
		return LOCAL_FATE_NONE;
	return f->over ? LOCAL_FATE_UNMOUNTS : LOCAL_FATE_ENDS;
}
