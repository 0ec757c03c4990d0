/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_news.h: everything that has changed, once, in the order of its last change. A reader that
 * was told up to an index is told the rest of the list, each thing as it is then, so that a slow
 * reader costs no memory. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_BASE_LOCAL_NEWS_H
#define DROVER_SUPERVISOR_SERVER_BASE_LOCAL_NEWS_H

#include <stdint.h>

struct event_head;
struct local;
struct local_news;
struct text;

/* How an event shows a kind of object (feed/local_events.h). */
struct local_news_type {
	const char *payload; /* the name of its object in the event */
	void (*head)(struct local *l, const struct local_news *n, struct event_head *ret);
	/* Appends the object. 0 or -ENOMEM. */
	int (*print)(struct local *l, const struct local_news *n, struct text *t);
};

/* Embedded. Zero has not changed. */
struct local_news {
	struct local_news *older, *newer;
	uint64_t index; /* 0: not in the list */
	const struct local_news_type *type;
};

struct local_news_list {
	struct local_news *oldest, *newest;
};

static inline void
local_news_remove(struct local_news_list *list, struct local_news *n)
{
	if (n->index == 0)
		return;
	*(n->older ? &n->older->newer : &list->oldest) = n->newer;
	*(n->newer ? &n->newer->older : &list->newest) = n->older;
	n->index = 0;
}

/* Moves it where its index says: nearly always to the end. */
static inline void
local_news_put(struct local_news_list *list, struct local_news *n,
    const struct local_news_type *type, uint64_t index)
{
	struct local_news *at;

	local_news_remove(list, n);
	for (at = list->newest; at && at->index > index;)
		at = at->older;
	n->type = type;
	n->index = index;
	n->older = at;
	n->newer = at ? at->newer : list->oldest;
	*(n->older ? &n->older->newer : &list->oldest) = n;
	*(n->newer ? &n->newer->older : &list->newest) = n;
}

#endif
