/* SPDX-License-Identifier: Apache-2.0 */
/* changed.h: notifies higher layers of a change without naming them. Code that changes something
 * marks it; code that depends on it registers a watch. A watch is called once for all marks of a
 * turn, after the turn's commit, never within changed_mark(). Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_CHANGED_H
#define DROVER_SUPERVISOR_CORE_CHANGED_H

#include <stdbool.h>
#include <sys/queue.h>

#include "supervisor/core/sup.h"

enum changed {
	CHANGED_WORK, /* a call to a helper, a run or a step of an alloc has ended */
	CHANGED_ALLOC_PHASE,
	CHANGED_PLUGINS, /* a plugin answers, or no longer does */
	CHANGED_LEASE, /* heartbeat has sent a message; before that it may have renewed the lease */
	CHANGED_DEPARTURE, /* the node lands or retires, or does not any more */
	CHANGED_VALUES,    /* a variable, a service or an ACL policy of the embedded server */
	CHANGED_N
};

/* Embedded in the object that depends on a change. Starts as zeros, with fn set. */
struct changed_watch {
	TAILQ_ENTRY(changed_watch) link;
	enum changed what;
	bool on;
	void (*fn)(struct sup *sup, struct changed_watch *w);
};

void changed_new(struct sup *sup);
void changed_free(struct sup *sup);

/* Marks a change; costs nothing without a watch. */
void changed_mark(struct sup *sup, enum changed what);
/* Calls w->fn after each turn that marks this change, until changed_unwatch(). Does nothing if w is
 * watching already. fn may begin and end watches, including w. */
void changed_watch(struct sup *sup, enum changed what, struct changed_watch *w);
void changed_unwatch(struct sup *sup, struct changed_watch *w);

#endif
