// SPDX-License-Identifier: Apache-2.0
/* departure_state.c: the states of a node that lands or retires, and every way between them. A lost
 * connection to the servers is none of the events: a stalled node never ends. Runs in: supervisor.
 */
#include <errno.h>

#include "supervisor/alloc/departure.h"

#define REFUSED (-1)

const char *const departure_names[DEPARTURE_STATES] = {
	[DEPARTURE_NONE] = "running",
	[DEPARTURE_LANDING] = "landing",
	[DEPARTURE_LANDED] = "landed",
	[DEPARTURE_RETURNING] = "returning",
	[DEPARTURE_RETIRING] = "retiring",
	[DEPARTURE_RETIRED] = "retired",
};

static const signed char next[DEPARTURE_STATES][DEPARTURE_EVENTS] = {
	[DEPARTURE_NONE] = { [DEPARTURE_LAND] = DEPARTURE_LANDING,
	    [DEPARTURE_RETIRE] = DEPARTURE_RETIRING,
	    [DEPARTURE_CANCEL] = REFUSED,
	    [DEPARTURE_FINISHED] = REFUSED,
	    [DEPARTURE_STARTED] = DEPARTURE_NONE,
	    [DEPARTURE_RETURNED] = REFUSED,
	    [DEPARTURE_REJOIN] = REFUSED },
	[DEPARTURE_LANDING] = { [DEPARTURE_LAND] = DEPARTURE_LANDING,
	    [DEPARTURE_RETIRE] = DEPARTURE_RETIRING,
	    [DEPARTURE_CANCEL] = DEPARTURE_RETURNING,
	    [DEPARTURE_FINISHED] = DEPARTURE_LANDED,
	    [DEPARTURE_STARTED] = DEPARTURE_LANDING,
	    [DEPARTURE_RETURNED] = REFUSED,
	    [DEPARTURE_REJOIN] = REFUSED },
	[DEPARTURE_LANDED] = { [DEPARTURE_LAND] = REFUSED,
	    [DEPARTURE_RETIRE] = REFUSED,
	    [DEPARTURE_CANCEL] = REFUSED,
	    [DEPARTURE_FINISHED] = REFUSED,
	    [DEPARTURE_STARTED] = DEPARTURE_RETURNING,
	    [DEPARTURE_RETURNED] = REFUSED,
	    [DEPARTURE_REJOIN] = REFUSED },
	[DEPARTURE_RETURNING] = { [DEPARTURE_LAND] = DEPARTURE_LANDING,
	    [DEPARTURE_RETIRE] = DEPARTURE_RETIRING,
	    [DEPARTURE_CANCEL] = REFUSED,
	    [DEPARTURE_FINISHED] = REFUSED,
	    [DEPARTURE_STARTED] = DEPARTURE_RETURNING,
	    [DEPARTURE_RETURNED] = DEPARTURE_NONE,
	    [DEPARTURE_REJOIN] = REFUSED },
	[DEPARTURE_RETIRING] = { [DEPARTURE_LAND] = REFUSED,
	    [DEPARTURE_RETIRE] = DEPARTURE_RETIRING,
	    [DEPARTURE_CANCEL] = DEPARTURE_RETURNING,
	    [DEPARTURE_FINISHED] = DEPARTURE_RETIRED,
	    [DEPARTURE_STARTED] = DEPARTURE_RETIRING,
	    [DEPARTURE_RETURNED] = REFUSED,
	    [DEPARTURE_REJOIN] = REFUSED },
	[DEPARTURE_RETIRED] = { [DEPARTURE_LAND] = REFUSED,
	    [DEPARTURE_RETIRE] = REFUSED,
	    [DEPARTURE_CANCEL] = REFUSED,
	    [DEPARTURE_FINISHED] = REFUSED,
	    [DEPARTURE_STARTED] = DEPARTURE_RETIRED,
	    [DEPARTURE_RETURNED] = REFUSED,
	    [DEPARTURE_REJOIN] = DEPARTURE_NONE },
};

int
departure_next(enum departure_state state, enum departure_event event, struct err *e)
{
	int to = next[state][event];

	if (to >= 0)
		return to;
	if (event == DEPARTURE_CANCEL)
		return err_say(e, -EINVAL, "the node neither lands nor retires: it is %s",
		    departure_names[state]);
	if (event == DEPARTURE_LAND && state == DEPARTURE_RETIRING)
		return err_say(
		    e, -EINVAL, "the node retires: cancel that first (drover node retire -cancel)");
	return err_say(e, -EINVAL, "the node is %s", departure_names[state]);
}
