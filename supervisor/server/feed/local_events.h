/* SPDX-License-Identifier: Apache-2.0 */
/* local_events.h: changes as /v1/event/stream reports them: one line of JSON each. Runs in:
 * supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_FEED_LOCAL_EVENTS_H
#define DROVER_SUPERVISOR_SERVER_FEED_LOCAL_EVENTS_H

#include "model/engine/field.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_news.h"

struct api_req;

#define EVENT_KEYS 3

/* Decides which followers get the event. The strings are borrowed. */
struct event_head {
	const char *topic, *type;
	const char *namespace;        /* NULL: the object is in none */
	const char *keys[EVENT_KEYS]; /* the object's own id first; NULL: no more */
};

/* local_events.c */
void local_events_init(struct local *l);
void local_events_free(struct local *l);
void local_event_head(struct local *l, const struct local_news *n, struct event_head *ret);
/* Appends the line of a change that was committed. */
void local_event_print(struct local *l, const struct local_news *n, struct text *t);
/* Keeps the last line of an object that is about to be freed, as an event of this type at this
 * index. The oldest lines are dropped when there are too many or they are too long. */
void local_event_keep(struct local *l, struct local_news *n, const struct local_news_type *type,
    const char *event, uint64_t index);

/* local_event_stream.c */
void local_event_streams_init(struct local *l);
void local_event_streams_free(struct local *l);
void local_api_stream_events(struct sup *sup, struct api_req *req);
/* To be called after a commit in which an object changed. */
void local_event_streams_wake(struct local *l);

#endif
