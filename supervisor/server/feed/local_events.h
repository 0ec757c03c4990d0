/* SPDX-License-Identifier: Apache-2.0 */
/* local_events.h: changes as /v1/event/stream tells them: each one line of JSON. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_FEED_LOCAL_EVENTS_H
#define DROVER_SUPERVISOR_SERVER_FEED_LOCAL_EVENTS_H

#include "supervisor/server/local.h"

#define EVENT_KEYS 3

/* What decides who is told of it. Borrowed. */
struct event_head {
	const char *topic, *type;
	const char *namespace;        /* NULL: it is in none */
	const char *keys[EVENT_KEYS]; /* its own first; NULL: no more */
};

/* Something that is no more, and its line. */
struct local_gone {
	struct local_news news;
	struct local_gone *later; /* the next that was kept */
	struct event_head head;
	char *namespace, *keys[EVENT_KEYS], *line;
};

void local_event_head(const struct local_news *n, struct event_head *ret);
/* Appends the line. What it says must have been committed. */
void local_event_print(struct local *l, const struct local_news *n, struct text *t);

/* Keeps the last line of what is about to be freed, under this index; the oldest of too many, or of
 * too long ones, are dropped. */
void local_event_keep(
    struct local *l, enum news_kind kind, struct local_news *n, const char *type, uint64_t index);
void local_events_free(struct local *l); /* and empties the list */

/* local_event_stream.c */
void local_api_stream_events(struct sup *sup, struct api_req *req);
/* After a commit in which something changed. */
void local_event_streams_look(void);

#endif
