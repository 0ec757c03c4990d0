/* SPDX-License-Identifier: Apache-2.0 */
/* local_fate.h: whether an alloc is replaced: when, or why not. The decision, without its
 * sentences. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FATE_H
#define DROVER_SUPERVISOR_SERVER_PLACE_LOCAL_FATE_H

#include <stdbool.h>

struct local_fate_facts {
	bool current;     /* it is the newest alloc of its slot, and has no successor */
	bool unplaced;    /* its replacement could not be placed */
	bool wanted;      /* DesiredStatus run */
	bool failed;      /* ClientStatus failed */
	bool reschedules; /* if failed: its policy permits a replacement, now or later */
	bool system;      /* system and sysbatch jobs are not rescheduled */
	bool policy;      /* its policy permits at least one attempt */
	bool waits;       /* its replacement waits for its end, or for its volumes */
	bool over;        /* its tasks have ended; only its volumes may still be in use */
};

enum local_fate {
	LOCAL_FATE_NONE,        /* there is nothing to say */
	LOCAL_FATE_UNPLACED,    /* its replacement cannot be placed */
	LOCAL_FATE_LATER,       /* it is replaced after its policy's delay */
	LOCAL_FATE_NEVER_TYPE,  /* not replaced: jobs of its type are not rescheduled */
	LOCAL_FATE_NEVER_RULE,  /* not replaced: its policy permits no attempts */
	LOCAL_FATE_NEVER_AGAIN, /* not replaced: the attempts of its policy are used up */
	LOCAL_FATE_ENDS,        /* its replacement waits until it has ended */
	LOCAL_FATE_UNMOUNTS,    /* its replacement waits for its volumes */
};

enum local_fate local_fate_decide(const struct local_fate_facts *f);

#endif
