// SPDX-License-Identifier: Apache-2.0
/* local_changes.c: at which index what was changed last, for whoever waits for it. Runs in:
 * supervisor. */
#include "supervisor/api/api_wait.h"
#include "supervisor/source/local/local.h"

static void
on_wake(struct sup *sup, struct deferred *d)
{
	api_wait_look(sup);
}

/* Whoever knows an index of before the restart is told what there is now: the last changes before
 * it may have had indexes that no row has. */
void
local_changes_init(struct local *l)
{
	l->loaded_index = l->index;
	for (size_t i = 0; i < LOCAL_KINDS; i++)
		l->last_change[i] = l->index;
	l->wake.run = on_wake;
}

void
local_changed(struct local *l, enum local_kind kind, struct local_job *j, uint64_t index)
{
	if (l->last_change[kind] < index)
		l->last_change[kind] = index;
	if (j && j->index < index)
		j->index = index;
	turn_defer(l->base.sup, &l->wake);
}

void
local_changed_now(struct local *l, enum local_kind kind, struct local_job *j)
{
	local_changed(l, kind, j, local_index_next(l));
}
