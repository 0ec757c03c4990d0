/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_news.h: every changed object once, in the order of its last change. A follower that has
 * read up to an index gets the objects that changed after it, each in its present state, so a slow
 * follower costs no memory. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_BASE_LOCAL_NEWS_H
#define DROVER_SUPERVISOR_SERVER_BASE_LOCAL_NEWS_H

#include <stdint.h>

#include "common/list.h"

struct event_head;
struct local;
struct local_news;
struct text;

/* How an object of one kind is written in an event (feed/local_events.h). */
struct local_news_type {
	const char *payload; /* the name of the object in the event */
	void (*head)(struct local *l, const struct local_news *n, struct event_head *ret);
	void (*print)(struct local *l, const struct local_news *n, struct text *t); /* appends */
};

/* Embedded in the object. All zeros: the object has not changed. */
struct local_news {
	TAILQ_ENTRY(local_news) entry; /* oldest change first */
	uint64_t index;                /* of the last change; 0: not in the list */
	const struct local_news_type *type;
};

TAILQ_HEAD(local_news_list, local_news);

static inline void
local_news_remove(struct local_news_list *list, struct local_news *n)
{
	if (n->index == 0)
		return;
	TAILQ_REMOVE(list, n, entry);
	n->index = 0;
}

/* Moves n to the position of its new index, which is nearly always the end. */
static inline void
local_news_put(struct local_news_list *list, struct local_news *n,
    const struct local_news_type *type, uint64_t index)
{
	struct local_news *before = NULL;

	local_news_remove(list, n);
	TAILQ_FOREACH_REVERSE (before, list, local_news_list, entry)
		if (before->index <= index)
			break;
	n->type = type;
	n->index = index;
	if (before)
		TAILQ_INSERT_AFTER(list, before, n, entry);
	else
		TAILQ_INSERT_HEAD(list, n, entry);
}

#endif
