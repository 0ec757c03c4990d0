// SPDX-License-Identifier: Apache-2.0
/* sup_tidy.c: gives memory and disk space back after many objects were removed, and overwrites what
 * the log of state.db has of removed secrets. Runs in: supervisor. */
#include "supervisor/core/sup_tidy.h"

#include <malloc.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_timer.h"

#define REMOVED_MIN 100     /* fewer objects are not worth the work */
#define QUIET_USEC  2000000 /* without a removal */
#define STEP_USEC   100000  /* between two steps of truncating state.db, for other work */
#define SECRET_MS   60000   /* the longest time for which a removed secret is kept */

struct tidy {
	struct sup *sup;
	struct sup_timer timer;
	unsigned removed, seen; /* since the last time, and of these when the timer was set */
	uint64_t secret_ms;     /* when the first secret was removed since then; 0: none was */
};

void
tidy_new(struct sup *sup)
{
	sup->tidy = mem_new(struct tidy);
	sup->tidy->sup = sup;
}

void
tidy_free(struct sup *sup)
{
	if (!sup->tidy)
		return;
	sup_timer_cancel(&sup->tidy->timer);
	free_p(&sup->tidy);
}

static void on_quiet(void *arg);

static void
wait_quiet(struct tidy *t)
{
	t->seen = t->removed;
	sup_timer_set(t->sup, &t->timer, CLOCK_MONOTONIC, QUIET_USEC, on_quiet, t);
}

/* Truncates state.db step by step, then frees the memory. */
static void
on_step(void *arg)
{
	struct tidy *t = arg;
	struct err e = { 0 };
	int r = store_shrink(t->sup->store, &e);

	if (r > 0) {
		sup_timer_set(t->sup, &t->timer, CLOCK_MONOTONIC, STEP_USEC, on_step, t);
		return;
	}
	if (r < 0)
		log_debug("%s", e.msg);
	(void)malloc_trim(0);
	if (t->removed >= REMOVED_MIN || t->secret_ms)
		wait_quiet(t);
}

static void
on_quiet(void *arg)
{
	struct tidy *t = arg;

	if (t->removed != t->seen && (t->secret_ms == 0 || clock_ms() < t->secret_ms + SECRET_MS)) {
		wait_quiet(t);
		return;
	}
	t->removed = 0;
	t->secret_ms = 0;
	on_step(t);
}

void
tidy_count(struct sup *sup)
{
	struct tidy *t = sup->tidy;

	if (++t->removed >= REMOVED_MIN && !sup_timer_is_set(&t->timer))
		wait_quiet(t);
}

void
tidy_secret(struct sup *sup)
{
	struct tidy *t = sup->tidy;

	t->removed++;
	if (t->secret_ms == 0)
		t->secret_ms = clock_ms();
	if (!sup_timer_is_set(&t->timer))
		wait_quiet(t);
}
