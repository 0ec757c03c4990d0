// SPDX-License-Identifier: Apache-2.0
/* local_expand.c: makes the mounts of an expanded volume take its new size. Runs in: supervisor. */
#include "supervisor/server/claim/local_expand.h"

#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"

#define RETRY_USEC     5000000ull
#define RETRY_MAX_USEC 300000000ull

/* An expansion of one volume that is in progress or due. */
struct local_expansion {
	struct local *l;
	struct local_volume *lv;  /* NULL: it was forgotten during a call */
	struct strings left;      /* the allocs of this round that were not asked yet */
	bool running, again;      /* a round is in progress; another one was requested meanwhile */
	unsigned mounted, missed; /* in this round: allocs that have it mounted, and have not */
	unsigned failures;        /* rounds, one after the other */
	int r;
	struct err why; /* the first failure of this round */
	struct sup_timer timer;
	local_expand_cb *cb;
	void *arg;
};

static void begin_round(struct local_expansion *x);

bool
local_expand_is_refused(int r)
{
	return r == -EBUSY || r == -EINVAL || r == -ERANGE || r == -EOPNOTSUPP;
}

static void
on_retry(void *arg)
{
	struct local_expansion *x = arg;

	if (x->lv->vol.node_expansion)
		begin_round(x);
}

static void
retry_later(struct local_expansion *x)
{
	uint64_t usec = RETRY_USEC << (x->failures < 6 ? x->failures : 6);

	sup_timer_set(x->l->base.sup, &x->timer, CLOCK_MONOTONIC,
	    usec < RETRY_MAX_USEC ? usec : RETRY_MAX_USEC, on_retry, x);
}

static void
set_result(struct local_expansion *x, bool done)
{
	struct csi_volume *vol = &x->lv->vol;
	const char *error = x->r < 0 ? x->why.msg : NULL;

	if (str_eq(vol->node_expansion_error, error) && !(done && vol->node_expansion))
		return;
	str_set(&vol->node_expansion_error, error);
	if (done)
		vol->node_expansion = 0;
	local_volume_changed(x->l, x->lv);
}

static void
end_round(struct local_expansion *x)
{
	struct sup *sup = x->l->base.sup;
	local_expand_cb *cb = x->cb;
	int r = x->r;
	struct err e = x->why;

	x->running = false;
	if (x->again) {
		x->again = false;
		begin_round(x);
		return;
	}
	x->cb = NULL;
	set_result(x, r == 0 && x->mounted > 0 && x->missed == 0);
	if (r < 0) {
		bool refused = local_expand_is_refused(r);

		journal_warn(JOURNAL_VOLUME, NULL, "volume %s: %s; tried %s", x->lv->vol.id, e.msg,
		    refused ? "when it is mounted the next time" : "again");
		if (!refused)
			retry_later(x);
		x->failures = refused ? 0 : x->failures + 1;
	} else {
		x->failures = 0;
		/* An alloc may have claimed it and mount it right now. */
		if (x->lv->vol.node_expansion && x->missed > 0)
			retry_later(x);
	}
	if (cb)
		cb(sup, x->arg, r, r < 0 ? &e : NULL);
}

static void ask_next(struct local_expansion *x);

static void
on_asked(struct sup *sup, void *arg, int r, int64_t capacity_bytes, const struct err *e)
{
	struct local_expansion *x = arg;

	if (!x->lv) {
		strings_done(&x->left);
		free(x);
		return;
	}
	if (r == -ENOTCONN)
		x->missed++;
	else
		x->mounted++;
	if (r < 0 && r != -ENOTCONN && x->r == 0) {
		x->r = r;
		x->why = *e;
	}
	ask_next(x);
}

static void
ask_next(struct local_expansion *x)
{
	struct sup *sup = x->l->base.sup;
	const struct csi_volume *vol = &x->lv->vol;
	const struct volume_size size = { vol->node_expansion, 0, &vol->secrets };
	cleanup_free char *alloc = NULL;
	struct sup_alloc *sa;
	struct id id;

	if (x->left.n == 0) {
		end_round(x);
		return;
	}
	alloc = mem_strdup(x->left.v[x->left.n - 1]);
	(void)strings_remove(&x->left, alloc);
	sa = id_from_uuid(alloc, &id) ? alloc_find(sup, &id) : NULL;
	volume_expand_here(sup, sa, vol->id, &size, on_asked, x);
}

static void
begin_round(struct local_expansion *x)
{
	const struct csi_volume *vol = &x->lv->vol;

	sup_timer_cancel(&x->timer);
	x->running = true;
	x->mounted = x->missed = 0;
	x->r = 0;
	for (size_t i = 0; i < vol->read_claims.n; i++)
		strings_add(&x->left, vol->read_claims.v[i].key);
	for (size_t i = 0; i < vol->write_claims.n; i++)
		strings_add(&x->left, vol->write_claims.v[i].key);
	if (x->left.n > 0) {
		x->r = plugin_check_node_expands(x->l->base.sup, str(vol->plugin_id), &x->why);
		if (x->r < 0)
			strings_done(&x->left);
	}
	ask_next(x);
}

static struct local_expansion *
expansion_of(struct local *l, struct local_volume *lv)
{
	if (!lv->expansion) {
		lv->expansion = mem_new(struct local_expansion);
		*lv->expansion = (struct local_expansion){ .l = l, .lv = lv };
	}
	return lv->expansion;
}

void
local_expand_here(struct local *l, struct local_volume *lv, local_expand_cb *cb, void *arg)
{
	struct local_expansion *x = expansion_of(l, lv);

	x->cb = cb;
	x->arg = arg;
	if (x->running)
		x->again = true;
	else
		begin_round(x);
}

/* A mount that was made later has asked, perhaps for a smaller size than is due by now. */
static void
on_grown(struct sup *sup, const char *namespace, const char *id, int64_t required_bytes, int r,
    const struct err *e)
{
	struct local *l = local_of_sup(sup);
	struct local_volume *lv = local_volume_find(l, namespace, id);
	struct local_expansion *x;

	if (!lv || !lv->vol.node_expansion)
		return;
	x = expansion_of(l, lv);
	if (x->running || x->failures > 0)
		return; /* a round finds it */
	if (required_bytes < lv->vol.node_expansion) {
		retry_later(x);
		return;
	}
	x->r = r;
	if (r < 0)
		x->why = *e;
	set_result(x, r >= 0);
	if (r < 0 && !local_expand_is_refused(r))
		retry_later(x);
}

void
local_expand_resume(struct local *l)
{
	size_t n;
	cleanup_free struct local_key **all = local_volumes_sorted(l, &n);

	volumes_report_grown(l->base.sup, on_grown);
	for (size_t i = 0; i < n; i++) {
		struct local_volume *lv = local_volume_of(all[i]);

		if (lv->vol.node_expansion)
			retry_later(expansion_of(l, lv));
	}
}

void
local_expand_drop(struct local_volume *lv)
{
	struct local_expansion *x = lv->expansion;

	lv->expansion = NULL;
	if (!x)
		return;
	sup_timer_cancel(&x->timer);
	if (x->running) {
		x->lv = NULL; /* on_asked() frees it */
		return;
	}
	strings_done(&x->left);
	free(x);
}
