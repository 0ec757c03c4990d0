// SPDX-License-Identifier: Apache-2.0
/*
 * volume_stats.c: the fill level and the condition of published volumes. A volume is asked about
 * once for all its mounts, and a plugin about one volume at a time in each round, so that a slow
 * plugin gets no more work than it can do. Runs in: supervisor.
 */
#include "supervisor/volume/volume_stats.h"

#include <stdio.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugin_calls.h"
#include "supervisor/volume/volume_calls.h"

#define FIRST_USEC 5000000
#define ROUND_USEC 60000000
/* A volume is almost full above the first percentage, until it is below the second. */
#define FULL_PERCENT     95
#define NOT_FULL_PERCENT 90

/* Who waits for the answer. */
struct asker {
	STAILQ_ENTRY(asker) next;
	volume_stats_cb *cb;
	void *arg;
};

/* What is known of one volume; all its mounts share it. */
struct volume_level {
	unsigned users;          /* mounts */
	struct volume_here here; /* without mounts */
	bool full;
	bool due;            /* to be asked in this round */
	uint64_t turn;       /* when it was asked last: a number of volume_stats.turn */
	struct mount *asked; /* the mount whose call is out; NULL: none */
	struct plugin_call *call;
	STAILQ_HEAD(, asker) askers;
};

struct volume_stats {
	struct sup *sup;
	struct sup_timer timer;
	uint64_t turn; /* of the last request */
};

static void ask_next(struct sup *sup, const char *plugin);

/* Returns the level of the mount's volume, which is made for its first mount. */
static struct volume_level *
join_level(struct mount *m)
{
	struct mount *o = NULL;

	while (!m->level && (o = mount_next_of_volume(m, o)))
		m->level = o->level;
	if (!m->level) {
		m->level = mem_new(struct volume_level);
		volume_here_init(&m->level->here);
		STAILQ_INIT(&m->level->askers);
	} else if (!o) {
		return m->level;
	}
	m->level->users++;
	return m->level;
}

/* Returns whether the plugin can be asked about this mount. */
static bool
has_stats(const struct mount *m)
{
	struct plugin *p = plugin_find(m->sup, m->rec.plugin, CSI_PLUGIN_NODE);
	const struct csi_info *info = p ? plugin_node_info(p) : NULL;

	return m->step == MOUNT_PUBLISHED && !m->unmounting && info && info->node_info &&
	       info->node_info->supports_stats;
}

static bool
volume_is_busy(const struct mount *m)
{
	struct mount *o = NULL;

	while ((o = mount_next_of_volume(m, o)))
		if (o->busy)
			return true;
	return false;
}

/* --- answers --- */

static struct volume_amount *
make_amount(const Csi__V1__VolumeUsage *u)
{
	struct volume_amount *a = volume_amount_new();

	*a =
	    (struct volume_amount){ .used = u->used, .available = u->available, .total = u->total };
	if (a->used == 0 && a->available > 0 && a->available < a->total)
		a->used = a->total - a->available;
	volume_amount_rate(a);
	return a;
}

static void
take_usage(struct volume_here *here, const Csi__V1__VolumeUsage *u)
{
	struct volume_amount **at = u->unit == CSI__V1__VOLUME_USAGE__UNIT__BYTES    ? &here->bytes
				    : u->unit == CSI__V1__VOLUME_USAGE__UNIT__INODES ? &here->inodes
										     : NULL;

	/* Some file systems have no number of inodes. */
	if (!at || u->total <= 0 || u->used < 0 || u->available < 0)
		return;
	volume_amount_free(*at);
	*at = make_amount(u);
}

static void
take_answer(struct volume_here *here, const Csi__V1__NodeGetVolumeStatsResponse *rep)
{
	const Csi__V1__VolumeCondition *c = rep->volume_condition;

	volume_here_done(here);
	here->reported = clock_real_ns();
	for (size_t i = 0; i < rep->n_usage; i++)
		take_usage(here, rep->usage[i]);
	if (c) {
		here->condition = c->abnormal ? CONDITION_ABNORMAL : CONDITION_NORMAL;
		str_set(&here->condition_message, c->message);
	}
}

/* An event of the node, a line in the log, and an event of each task that has the volume. */
static void
report(const struct mount *m, const char *what)
{
	cleanup_done(node_event) struct node_event ev;
	char text[ERR_MSG_SIZE];
	struct mount *o = NULL;

	(void)snprintf(text, sizeof text, "volume %s %s", m->rec.volume_id, what);
	node_event_init(&ev);
	str_set(&ev.subsystem, "Storage");
	ev.message = mem_printf("Volume %s %s", m->rec.volume_id, what);
	string_map_set(&ev.details, "volume_id", m->rec.volume_id);
	string_map_set(&ev.details, "plugin", m->rec.plugin);
	node_event_add(m->sup, &ev);
	journal_warn(JOURNAL_VOLUME, ABOUT_MOUNT(m), "%s", text);
	while (m->sup->volumes->state && (o = mount_next_of_volume(m, o)))
		if (o->step == MOUNT_PUBLISHED)
			m->sup->volumes->state(m->sup, &o->rec.alloc_id, o->rec.alias, text);
}

static void
report_condition(const struct mount *m, const struct volume_here *old)
{
	const struct volume_here *here = &m->level->here;
	bool abnormal = here->condition == CONDITION_ABNORMAL;
	char text[ERR_MSG_SIZE];

	(void)snprintf(text, sizeof text, "is abnormal: plugin %s says: %s", m->rec.plugin,
	    *str(here->condition_message) ? here->condition_message : "nothing more");
	if (abnormal && (old->condition != CONDITION_ABNORMAL ||
			    !str_eq(old->condition_message, here->condition_message)))
		report(m, text);
	else if (!abnormal && old->condition == CONDITION_ABNORMAL)
		report(m, "is not abnormal any more");
}

static void
report_fill(const struct mount *m)
{
	struct volume_level *v = m->level;
	int64_t bytes = v->here.bytes ? v->here.bytes->percent : 0,
		inodes = v->here.inodes ? v->here.inodes->percent : 0,
		percent = bytes > inodes ? bytes : inodes;
	char text[64];

	if (v->full ? percent >= NOT_FULL_PERCENT : percent <= FULL_PERCENT)
		return;
	v->full = !v->full;
	(void)snprintf(text, sizeof text, "is %s: %lld %% of its %s are used",
	    v->full ? "almost full" : "not almost full any more", (long long)percent,
	    percent == bytes ? "bytes" : "inodes");
	report(m, text);
}

static void
end_askers(struct sup *sup, struct volume_level *v)
{
	struct asker *a;

	/* A callback may ask again. */
	while (!v->call && (a = STAILQ_FIRST(&v->askers))) {
		volume_stats_cb *cb = a->cb;
		void *arg = a->arg;

		STAILQ_REMOVE_HEAD(&v->askers, next);
		free(a);
		cb(sup, arg);
	}
}

static void
on_stats(struct sup *sup, void *arg, int r, const CsiCallRep *rep, const struct err *e)
{
	struct mount *m = arg;
	struct volume_level *v = m->level;
	cleanup_free char *plugin = mem_strdup(m->rec.plugin);
	cleanup_done(volume_here) struct volume_here old;

	v->call = NULL;
	v->asked = NULL;
	if (r >= 0 && rep->answer_case == CSI_CALL_REP__ANSWER_NODE_GET_VOLUME_STATS) {
		old = v->here;
		volume_here_init(&v->here);
		take_answer(&v->here, rep->node_get_volume_stats);
		report_condition(m, &old);
		report_fill(m);
	} else {
		volume_here_init(&old);
		str_set(&v->here.error, e ? e->msg : "the answer is empty");
	}
	end_askers(sup, v);
	ask_next(sup, plugin);
}

/* --- requests --- */

static void
ask(struct mount *m)
{
	const struct volume_call call = { .sup = m->sup, .rec = &m->rec, .cb = on_stats, .arg = m };
	struct volume_level *v = join_level(m);

	v->due = false;
	v->turn = ++m->sup->volumes->stats->turn;
	v->asked = m;
	v->call = volume_send_stats(&call);
}

/* Asks the plugin about the next volume of this round, the one that was not asked for longest, if
 * no call about another one is out. */
static void
ask_next(struct sup *sup, const char *plugin)
{
	struct mount *m, *next = NULL;

	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		if (!m->level || !(m->level->call || m->level->due) ||
		    !str_eq(m->rec.plugin, plugin))
			continue;
		if (m->level->call)
			return;
		if ((!next || m->level->turn < next->level->turn) && has_stats(m) &&
		    !volume_is_busy(m))
			next = m;
	}
	if (next)
		ask(next);
}

static void
begin_round(void *arg)
{
	struct volume_stats *vs = arg;
	struct strings plugins = { 0 };
	struct mount *m;
	bool any = false;

	LIST_FOREACH (m, &vs->sup->volumes->mounts, link) {
		any |= m->step == MOUNT_PUBLISHED;
		if (!has_stats(m))
			continue;
		join_level(m)->due = true;
		if (!strings_has(&plugins, m->rec.plugin))
			strings_add(&plugins, m->rec.plugin);
	}
	for (size_t i = 0; i < plugins.n; i++)
		ask_next(vs->sup, plugins.v[i]);
	strings_done(&plugins);
	if (any)
		sup_timer_set(vs->sup, &vs->timer, CLOCK_MONOTONIC, ROUND_USEC, begin_round, vs);
}

void
volume_stats_watch(struct sup *sup)
{
	struct volume_stats *vs = sup->volumes->stats;

	if (!sup_timer_is_set(&vs->timer))
		sup_timer_set(sup, &vs->timer, CLOCK_MONOTONIC, FIRST_USEC, begin_round, vs);
}

/* Returns a mount of the volume, a published one if there is one. */
static struct mount *
find_mount(struct sup *sup, const char *namespace, const char *id)
{
	struct mount *m = NULL, *found = NULL;

	while ((m = mount_next_of_id(sup, namespace, id, m)))
		if (m->step != MOUNT_GONE && (!found || m->step == MOUNT_PUBLISHED))
			found = m;
	return found;
}

void
volume_stats_ask(
    struct sup *sup, const char *namespace, const char *id, volume_stats_cb *cb, void *arg)
{
	struct mount *m = find_mount(sup, namespace, id);
	struct asker *a;

	if (!m || !has_stats(m) || volume_is_busy(m)) {
		cb(sup, arg);
		return;
	}
	a = mem_new(struct asker);
	*a = (struct asker){ .cb = cb, .arg = arg };
	STAILQ_INSERT_TAIL(&join_level(m)->askers, a, next);
	if (!m->level->call)
		ask(m);
}

static void
cancel_call(struct sup *sup, struct volume_level *v)
{
	plugin_call_cancel(v->call);
	v->call = NULL;
	v->asked = NULL;
	end_askers(sup, v);
}

void
volume_stats_yield(const struct mount *m)
{
	struct volume_level *v = m->level;
	struct mount *o = NULL;

	while (!v && (o = mount_next_of_volume(m, o)))
		v = o->level;
	if (!v || !v->call)
		return;
	cancel_call(m->sup, v);
	v->due = false;
	ask_next(m->sup, m->rec.plugin);
	v->due = true;
}

void
volume_stats_leave(struct mount *m)
{
	struct volume_level *v = m->level;

	if (!v)
		return;
	if (v->asked == m)
		cancel_call(m->sup, v);
	m->level = NULL;
	if (--v->users > 0)
		return;
	end_askers(m->sup, v);
	volume_here_done(&v->here);
	free(v);
}

/* --- what is known --- */

const struct volume_here *
volume_stats_of(struct sup *sup, const char *namespace, const char *id)
{
	const struct mount *m = find_mount(sup, namespace, id);

	return m && m->level ? &m->level->here : NULL;
}

static void
add_mount(struct volume_here *here, const struct mount *m)
{
	struct volume_here_mount *to = list_add(volume_here_mount, &here->mounts);
	const struct volume_trouble *t = &m->trouble;
	char path[MOUNT_PATH_SIZE], what[ERR_MSG_SIZE];

	mount_path(m, false, path);
	str_set(&to->alloc_id, m->rec.alloc);
	str_set(&to->name, m->rec.alias);
	to->path = mem_printf("%s/%s", m->sup->args.data_dir, path);
	to->read_only = m->rec.read_only;
	str_set(&to->state, m->unmounting                ? "unmounting"
			    : m->step == MOUNT_PUBLISHED ? "published"
							 : "mounting");
	if (mount_say_pending(m, what, sizeof what))
		str_set(&to->waits_for, what);
	if (t->tries == 0)
		return;
	str_set(&to->error, t->error);
	to->tries = t->tries;
	to->since = t->since_ns;
	to->next_try = t->next_ns;
}

struct volume_here *
volume_here_make(struct sup *sup, const char *namespace, const char *id)
{
	const struct mount *m = find_mount(sup, namespace, id);
	struct volume_here *here;
	struct mount *o = NULL;

	if (!m)
		return NULL;
	here = volume_here_new();
	if (m->level)
		volume_here_copy(&m->level->here, here);
	str_set(&here->node_id, node_get(sup)->id);
	while ((o = mount_next_of_volume(m, o)))
		if (o->step != MOUNT_GONE)
			add_mount(here, o);
	return here;
}

struct volume_stats *
volume_stats_new(struct sup *sup)
{
	struct volume_stats *vs = mem_new(struct volume_stats);

	vs->sup = sup;
	sup_timer_set(sup, &vs->timer, CLOCK_MONOTONIC, FIRST_USEC, begin_round, vs);
	return vs;
}

void
volume_stats_free(struct volume_stats *vs)
{
	if (!vs)
		return;
	sup_timer_cancel(&vs->timer);
	free(vs);
}
