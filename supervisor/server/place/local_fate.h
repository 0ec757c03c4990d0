/* SPDX-License-Identifier: Apache-2.0 */
/* local_fate.h: what follows an alloc: another one, and when, or why none does. The decision,
 * without its sentences. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FATE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FATE_H

#include <stdbool.h>

struct local_fate_facts {
	bool current;     /* it is the newest alloc of its slot, and has no successor */
	bool unplaced;    /* its successor could not be placed */
	bool wanted;      /* DesiredStatus run */
	bool failed;      /* ClientStatus failed */
	bool reschedules; /* of one that failed: its policy permits a successor, now or later */
	bool system;      /* system and sysbatch jobs are not rescheduled */
	bool policy;      /* it has a policy that permits attempts at all */
	bool waits;       /* its successor waits for something of it */
	bool over;        /* its tasks have ended; only its volumes may be held still */
};

enum local_fate {
	LOCAL_FATE_NONE,        /* nothing is to be said */
	LOCAL_FATE_UNPLACED,    /* its successor has no place */
	LOCAL_FATE_LATER,       /* a successor is placed after its policy's delay */
	LOCAL_FATE_NEVER_TYPE,  /* none: jobs of its type are not rescheduled */
	LOCAL_FATE_NEVER_RULE,  /* none: its policy permits none */
	LOCAL_FATE_NEVER_AGAIN, /* none: the attempts of its policy are used up */
	LOCAL_FATE_ENDS,        /* its successor waits until it has ended */
	LOCAL_FATE_UNMOUNTS,    /* its successor waits for its volumes */
};

enum local_fate local_fate_decide(const struct local_fate_facts *f);

#endif
