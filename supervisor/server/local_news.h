/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_news.h: what changed when: everything that has, once, in the order of its last change.
 * Whoever was told up to an index is told the rest of the list, each thing as it is then; so what
 * one who reads slowly costs does not grow. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVER_LOCAL_NEWS_H
#define DROVER_SUPERVISOR_SERVER_LOCAL_NEWS_H

#include <stdint.h>

/* Whose member it is; its text, for what is no more. */
enum news_kind {
	NEWS_JOB,
	NEWS_ALLOC,
	NEWS_EVAL,
	NEWS_DEPLOYMENT,
	NEWS_NODE,
	NEWS_SERVICE,
	NEWS_GONE
};

/* Embedded. Zero has not changed. */
struct local_news {
	struct local_news *older, *newer;
	uint64_t index; /* 0: not in the list */
	enum news_kind kind;
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
local_news_put(
    struct local_news_list *list, struct local_news *n, enum news_kind kind, uint64_t index)
{
	struct local_news *at;

	local_news_remove(list, n);
	for (at = list->newest; at && at->index > index;)
		at = at->older;
	n->kind = kind;
	n->index = index;
	n->older = at;
	n->newer = at ? at->newer : list->oldest;
	*(n->older ? &n->older->newer : &list->oldest) = n;
	*(n->newer ? &n->newer->older : &list->newest) = n;
}

#endif
