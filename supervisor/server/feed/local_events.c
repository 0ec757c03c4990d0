// SPDX-License-Identifier: Apache-2.0
/* local_events.c: changes as lines of the event stream, and the lines of what was removed. Runs in:
 * supervisor. */
#include "supervisor/server/feed/local_events.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/list.h"
#include "common/log.h"
#include "supervisor/server/feed/local_changes.h"

#define KEPT_MAX   500
#define KEPT_BYTES (4u * 1024 * 1024)

/* Something that was removed, and its line. */
struct kept {
	struct local_news news;
	struct kept *later; /* the next that was kept */
	struct event_head head;
	char *namespace, *keys[EVENT_KEYS], *line;
};

struct local_kept {
	struct kept *first, *last; /* oldest first */
	unsigned n;
	size_t bytes;
};

static struct kept *
kept_of(const struct local_news *n)
{
	return container_of(n, struct kept, news);
}

static void
get_kept_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	*ret = kept_of(n)->head;
}

/* print: NULL, the line is there already. */
static const struct local_news_type kept_news = { .head = get_kept_head };

void
local_event_head(struct local *l, const struct local_news *n, struct event_head *ret)
{
	n->type->head(l, n, ret);
}

static void
print_line(struct local *l, const struct local_news *n, const struct event_head *h, uint64_t index,
    struct text *t)
{
	text_printf(t, "{\"Index\":%llu,\"Events\":[{\"Topic\":\"%s\",\"Type\":\"%s\",\"Key\":",
	    (unsigned long long)index, h->topic, h->type);
	text_json_string(t, str(h->keys[0]));
	text_printf(t, ",\"Namespace\":");
	text_json_string(t, str(h->namespace));
	text_printf(t, ",\"FilterKeys\":[");
	for (size_t i = 1, some = 0; i < EVENT_KEYS; i++) {
		if (!*str(h->keys[i]))
			continue;
		text_append(t, ",", some++ > 0);
		text_json_string(t, h->keys[i]);
	}
	text_printf(t, "],\"Index\":%llu,\"Payload\":{\"%s\":", (unsigned long long)index,
	    n->type->payload);
	if (n->type->print(l, n, t) < 0)
		t->failed = true;
	text_printf(t, "}}]}\n");
}

void
local_event_print(struct local *l, const struct local_news *n, struct text *t)
{
	struct event_head h;

	if (!n->type->print) {
		text_append(t, kept_of(n)->line, strlen(kept_of(n)->line));
		return;
	}
	local_event_head(l, n, &h);
	print_line(l, n, &h, n->index, t);
}

/* --- what was removed --- */

static void
free_kept(struct local *l, struct kept *g)
{
	local_changes_remove(l, &g->news);
	for (size_t i = 0; i < EVENT_KEYS; i++)
		free(g->keys[i]);
	free(g->namespace);
	free(g->line);
	free(g);
}

static void
drop_oldest(struct local *l)
{
	struct local_kept *kept = l->kept;
	struct kept *g = kept->first;

	kept->first = g->later;
	if (!g->later)
		kept->last = NULL;
	kept->n--;
	kept->bytes -= strlen(g->line);
	free_kept(l, g);
}

static int
fill_kept(struct kept *g, const struct event_head *h)
{
	g->head = *h;
	if (str_set(&g->namespace, h->namespace) < 0)
		return -1;
	g->head.namespace = g->namespace;
	for (size_t i = 0; i < EVENT_KEYS; i++) {
		if (str_set(&g->keys[i], h->keys[i]) < 0)
			return -1;
		g->head.keys[i] = g->keys[i];
	}
	return 0;
}

static void
append_kept(struct local *l, struct kept *g)
{
	struct local_kept *kept = l->kept;

	*(kept->last ? &kept->last->later : &kept->first) = g;
	kept->last = g;
	kept->n++;
	kept->bytes += strlen(g->line);
	while (kept->n > KEPT_MAX || kept->bytes > KEPT_BYTES)
		drop_oldest(l);
}

void
local_event_keep(struct local *l, struct local_news *n, const struct local_news_type *type,
    const char *event, uint64_t index)
{
	struct kept *g = calloc(1, sizeof *g);
	struct text line = { 0 };
	struct event_head h;

	n->type = type;
	local_event_head(l, n, &h);
	h.type = event;
	print_line(l, n, &h, index, &line);
	local_changes_remove(l, n);
	if (!g || line.failed || fill_kept(g, &h) < 0) {
		log_error("no memory to report that %s %s was removed", h.topic, str(h.keys[0]));
		text_done(&line);
		if (g)
			free_kept(l, g);
		return;
	}
	g->line = line.text;
	local_changes_put(l, &g->news, &kept_news, index);
	append_kept(l, g);
}

int
local_events_init(struct local *l)
{
	l->kept = calloc(1, sizeof *l->kept);
	return l->kept ? 0 : -ENOMEM;
}

void
local_events_free(struct local *l)
{
	while (l->kept && l->kept->first)
		drop_oldest(l);
	free(l->kept);
}
