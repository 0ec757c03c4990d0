// SPDX-License-Identifier: Apache-2.0
/* local_changes.c: at which index each kind of objects changed last. Runs in: supervisor. */
#include "supervisor/server/feed/local_changes.h"

#include <stdlib.h>

#include "common/mem.h"
#include "supervisor/api/api_node.h"
#include "supervisor/core/changed.h"
#include "supervisor/http/api_wait.h"
#include "supervisor/node/node_state.h"
#include "supervisor/server/feed/local_events.h"

struct local_changes {
	uint64_t last[LOCAL_KINDS];
	uint64_t loaded; /* the index at the agent's start */
	struct local_news_list news;
	struct local_news node;
	struct deferred wake;
};

static void
on_committed(struct sup *sup, struct deferred *d)
{
	api_wait_check(sup);
	local_event_streams_wake(local_of_sup(sup));
}

void
local_changes_init(struct local *l)
{
	l->changes = mem_new(struct local_changes);
	TAILQ_INIT(&l->changes->news);
	l->changes->wake.run = on_committed;
	local_changes_load(l);
}

void
local_changes_free(struct local *l)
{
	turn_forget_deferred(l->base.sup, &l->changes->wake);
	free(l->changes);
}

/* The last changes before a restart may have had indexes that are in no row. */
void
local_changes_load(struct local *l)
{
	struct local_changes *c = l->changes;

	c->loaded = l->index;
	for (size_t i = 0; i < LOCAL_KINDS; i++)
		c->last[i] = l->index;
}

void
local_changes_record(struct local *l, enum local_kind kind, uint64_t index)
{
	struct local_changes *c = l->changes;

	if (c->last[kind] < index)
		c->last[kind] = index;
	turn_defer(l->base.sup, &c->wake);
	if (kind == LOCAL_VARIABLES || kind == LOCAL_SERVICES || kind == LOCAL_ACL_POLICIES)
		changed_mark(l->base.sup, CHANGED_VALUES);
}

uint64_t
local_changes_last(const struct local *l, enum local_kind kind)
{
	return l->changes->last[kind];
}

uint64_t
local_changes_since_start(const struct local *l, uint64_t index)
{
	return index > l->changes->loaded ? index : l->changes->loaded;
}

void
local_changes_put(
    struct local *l, struct local_news *n, const struct local_news_type *type, uint64_t index)
{
	local_news_put(&l->changes->news, n, type, index);
}

void
local_changes_remove(struct local *l, struct local_news *n)
{
	local_news_remove(&l->changes->news, n);
}

struct local_news *
local_changes_newest(const struct local *l)
{
	return TAILQ_LAST(&l->changes->news, local_news_list);
}

static void
get_node_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	*ret = (struct event_head){
		.topic = "Node", .type = "NodeEvent", .keys = { str(node_get(l->base.sup)->id) }
	};
}

static void
print_node(struct local *l, const struct local_news *n, struct text *t)
{
	api_node_print(l->base.sup, 0, t);
}

static const struct local_news_type node_news = { "Node", get_node_head, print_node };

void
local_node_changed(struct local *l)
{
	uint64_t index = local_index_next(l);

	local_changes_record(l, LOCAL_NODES, index);
	local_changes_put(l, &l->changes->node, &node_news, index);
}
