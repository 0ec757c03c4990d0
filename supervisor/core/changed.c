// SPDX-License-Identifier: Apache-2.0
/* changed.c: marks of a turn, and the watches that are called for them. Runs in: supervisor. */
#include "supervisor/core/changed.h"

#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/sup_turn.h"

TAILQ_HEAD(watch_list, changed_watch);

struct changes {
	struct deferred run;
	bool marked[CHANGED_N];
	struct watch_list watches[CHANGED_N];
	struct changed_watch *next; /* the watch to call next, while watches are being called */
};

static void
call_watches(struct sup *sup, struct changes *c, enum changed what)
{
	struct changed_watch *w = TAILQ_FIRST(&c->watches[what]);

	for (; w; w = c->next) {
		c->next = TAILQ_NEXT(w, link);
		w->fn(sup, w);
	}
}

static void
run_marks(struct sup *sup, struct deferred *d)
{
	struct changes *c = sup->changes;

	for (enum changed what = 0; what < CHANGED_N; what++) {
		if (!c->marked[what])
			continue;
		c->marked[what] = false;
		call_watches(sup, c, what);
	}
}

void
changed_new(struct sup *sup)
{
	struct changes *c = mem_new(struct changes);

	c->run.run = run_marks;
	for (enum changed what = 0; what < CHANGED_N; what++)
		TAILQ_INIT(&c->watches[what]);
	sup->changes = c;
}

void
changed_free(struct sup *sup)
{
	if (!sup->changes)
		return;
	turn_forget_deferred(sup, &sup->changes->run);
	free_p(&sup->changes);
}

void
changed_mark(struct sup *sup, enum changed what)
{
	struct changes *c = sup->changes;

	if (TAILQ_EMPTY(&c->watches[what]))
		return;
	c->marked[what] = true;
	turn_defer(sup, &c->run);
}

void
changed_watch(struct sup *sup, enum changed what, struct changed_watch *w)
{
	if (w->on)
		return;
	w->on = true;
	w->what = what;
	/* Inserted at the head, so that a watch that starts while watches are being called waits
	 * for the next mark. */
	TAILQ_INSERT_HEAD(&sup->changes->watches[what], w, link);
}

void
changed_unwatch(struct sup *sup, struct changed_watch *w)
{
	struct changes *c = sup->changes;

	if (!w->on)
		return;
	w->on = false;
	if (c->next == w)
		c->next = TAILQ_NEXT(w, link);
	TAILQ_REMOVE(&c->watches[w->what], w, link);
}
