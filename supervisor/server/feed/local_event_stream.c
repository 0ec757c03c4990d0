// SPDX-License-Identifier: Apache-2.0
/*
 * local_event_stream.c: /v1/event/stream: lines of JSON, one for each change, and "{}" every ten
 * seconds. A line is made after the commit of its change, when the follower has read the lines
 * before; a follower that reads nothing for 30 s is cut off (http.c). Runs in: supervisor.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/mem.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/http/api_list.h"
#include "supervisor/http/api.h"
#include "supervisor/http/api_router.h"
#include "supervisor/server/feed/local_changes.h"
#include "supervisor/server/feed/local_events.h"

#define BEAT_USEC   10000000
#define FILL        65536 /* bytes that are made ahead, plus at most one line */
#define FIRST_LINES 100   /* a stream without an index begins with these, as on servers */

struct topic {
	char *name, *key; /* "*": any */
};

/* One follower. */
struct events {
	struct api_stream base;
	LIST_ENTRY(events) entry;
	struct deferred fill;
	struct local *l;
	sd_event_source *beat;
	char *namespace;
	struct topic topics[API_QUERY_MAX];
	size_t n_topics;
	uint64_t printed; /* the index up to which lines were made */
	bool whole;       /* lines of all changes were made */
	struct text out;
	size_t at; /* bytes of out that were read */
};

struct local_streams {
	LIST_HEAD(, events) all;
};

void
local_event_streams_init(struct local *l)
{
	l->streams = mem_new(struct local_streams);
}

/* The API has ended all streams before. */
void
local_event_streams_free(struct local *l)
{
	free(l->streams);
}

static bool
topic_fits(const struct topic *topic, const struct event_head *h)
{
	if (strcmp(topic->name, "*") != 0 && strcmp(topic->name, h->topic) != 0)
		return false;
	if (strcmp(topic->key, "*") == 0)
		return true;
	for (size_t i = 0; i < EVENT_KEYS; i++)
		if (h->keys[i] && strcmp(h->keys[i], topic->key) == 0)
			return true;
	return false;
}

/* Returns the permission that a topic needs: management for those that are not here. */
static enum acl_need
need_of_topic(const char *name)
{
	static const struct {
		const char *topic;
		enum acl_need need;
	} needs[] = {
		{ "Deployment", ACL_READ_JOB },
		{ "Evaluation", ACL_READ_JOB },
		{ "Allocation", ACL_READ_JOB },
		{ "Job", ACL_READ_JOB },
		{ "Service", ACL_READ_JOB },
		{ "CSIVolume", ACL_READ_VOLUME },
		{ "CSIPlugin", ACL_READ_JOB },
		{ "Node", ACL_NODE_READ },
	};

	for (size_t i = 0; i < ELEMENTSOF(needs); i++)
		if (strcmp(needs[i].topic, name) == 0)
			return needs[i].need;
	return ACL_MANAGEMENT;
}

static bool
is_wanted(const struct events *ev, const struct local_news *n)
{
	struct event_head h;

	local_event_head(ev->l, n, &h);
	if (h.namespace && strcmp(ev->namespace, "*") != 0 &&
	    strcmp(ev->namespace, h.namespace) != 0)
		return false;
	/* Checked for each event, because the token may lose its permission. */
	for (size_t i = 0; i < ev->n_topics; i++)
		if (topic_fits(&ev->topics[i], &h))
			return api_permits(ev->base.req, need_of_topic(h.topic),
			    h.namespace ?: api_namespace(ev->base.req));
	return false;
}

static int
add_topic(struct events *ev, const char *text, struct err *e)
{
	const char *colon = strchr(text, ':');
	struct topic *topic = &ev->topics[ev->n_topics];

	if (colon && strchr(colon + 1, ':'))
		return err_say(e, -EINVAL,
		    "Invalid topic query: error parsing topics: Invalid key value pair for topic, "
		    "topic: %.140s",
		    text);
	ev->n_topics++;
	topic->name = mem_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
	topic->key = mem_strdup(colon ? colon + 1 : "*");
	return 0;
}

/* Returns the first change after the printed ones, or NULL. */
static struct local_news *
next_news(const struct events *ev)
{
	struct local_news *n = local_changes_newest(ev->l), *found = NULL;

	for (; n && n->index > ev->printed; n = TAILQ_PREV(n, local_news_list, entry))
		found = n;
	return found;
}

/* Removes the bytes that the follower has read from the buffer: all, or those of a follower that
 * never catches up. */
static void
drop_read_bytes(struct events *ev)
{
	if (ev->at < ev->out.len && ev->at < FILL)
		return;
	if (ev->at < ev->out.len) {
		ev->out.len -= ev->at;
		memmove(ev->out.text, ev->out.text + ev->at, ev->out.len + 1);
	} else {
		text_done(&ev->out);
	}
	ev->at = 0;
}

static void
on_fill(struct sup *sup, struct deferred *d)
{
	struct events *ev = container_of(d, struct events, fill);
	struct local_news *n = next_news(ev);

	drop_read_bytes(ev);
	for (; n && ev->out.len - ev->at < FILL; n = TAILQ_NEXT(n, entry)) {
		if (is_wanted(ev, n))
			local_event_print(ev->l, n, &ev->out);
		ev->printed = n->index;
	}
	ev->whole = !n;
	if (ev->at < ev->out.len)
		api_stream_wake(sup, &ev->base);
}

void
local_event_streams_wake(struct local *l)
{
	struct events *ev;

	LIST_FOREACH (ev, &l->streams->all, entry)
		turn_defer(l->base.sup, &ev->fill);
}

static int
on_beat(sd_event_source *source, uint64_t usec, void *userdata)
{
	struct events *ev = userdata;

	(void)sd_event_source_set_time_relative(source, BEAT_USEC);
	(void)sd_event_source_set_enabled(source, SD_EVENT_ONESHOT);
	drop_read_bytes(ev);
	if (ev->out.len == 0)
		text_append(&ev->out, "{}\n", 3);
	api_stream_wake(ev->l->base.sup, &ev->base);
	return 0;
}

static ssize_t
read_lines(struct api_stream *st, char *buf, size_t max)
{
	struct events *ev = container_of(st, struct events, base);
	size_t n = ev->out.len - ev->at;

	n = n < max ? n : max;
	if (n > 0)
		memcpy(buf, ev->out.text + ev->at, n);
	ev->at += n;
	if (ev->at == ev->out.len && !ev->whole)
		turn_defer(ev->l->base.sup, &ev->fill);
	return (ssize_t)n;
}

static void
on_done(struct api_stream *st)
{
	struct events *ev = container_of(st, struct events, base);

	LIST_REMOVE(ev, entry);
	turn_forget_deferred(ev->l->base.sup, &ev->fill);
	(void)sd_event_source_disable_unref(ev->beat);
	for (size_t i = 0; i < ev->n_topics; i++) {
		free(ev->topics[i].name);
		free(ev->topics[i].key);
	}
	free(ev->namespace);
	text_done(&ev->out);
	free(ev);
}

static uint64_t
first_index(const struct local *l)
{
	const struct local_news *n = local_changes_newest(l);

	for (unsigned i = 0; n && i < FIRST_LINES; i++)
		n = TAILQ_PREV(n, local_news_list, entry);
	return n ? n->index : 0;
}

static int
read_query(struct events *ev, const struct api_req *req, struct err *e)
{
	const char *index = api_query(req, "index"), *topic;
	char *end;
	int r = 0;

	errno = 0;
	ev->printed = index && *index ? strtoull(index, &end, 10) : 0;
	if (index && *index && (!isdigit((unsigned char)*index) || *end || errno))
		return err_say(
		    e, -EINVAL, "Unable to parse index: \"%.64s\" is not a number", index);
	/* The query's index is the first that is sent. */
	ev->printed = ev->printed ? ev->printed - 1 : first_index(ev->l);
	for (unsigned i = 0; r == 0 && (topic = api_query_nth(req, "topic", i)); i++)
		r = add_topic(ev, topic, e);
	if (r == 0 && ev->n_topics == 0)
		r = add_topic(ev, "*", e);
	str_set(&ev->namespace, api_namespace(req));
	for (size_t i = 0; i < ev->n_topics && r == 0; i++)
		if (!api_permits(req, need_of_topic(ev->topics[i].name), ev->namespace))
			r = err_say(e, -EACCES, "Permission denied");
	return r;
}

void
local_api_stream_events(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct events *ev = mem_new(struct events);
	struct err e = { 0 };
	int r;

	ev->base = (struct api_stream){ .next = read_lines, .done = on_done, .beats = true };
	ev->fill.run = on_fill;
	ev->l = l;
	LIST_INSERT_HEAD(&l->streams->all, ev, entry);
	r = read_query(ev, req, &e);
	if (r == 0) {
		r = sd_event_add_time_relative(
		    sup->event, &ev->beat, CLOCK_BOOTTIME, BEAT_USEC, 0, on_beat, ev);
		if (r < 0)
			(void)err_set(&e, r, "set the timer of the event stream");
	}
	if (r < 0) {
		api_reply_error(req, r == -EINVAL ? 400 : r == -EACCES ? 403 : 500, "%s", e.msg);
		on_done(&ev->base);
		return;
	}
	text_append(&ev->out, "{}\n", 3);
	turn_defer(sup, &ev->fill);
	api_reply_stream(req, "application/json", &ev->base);
}
