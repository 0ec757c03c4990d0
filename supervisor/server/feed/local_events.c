// SPDX-License-Identifier: Apache-2.0
/* local_events.c: changes as lines of the event stream, and the lines of removed objects. Runs in:
 * supervisor. */
#include "supervisor/server/feed/local_events.h"

#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "supervisor/server/feed/local_changes.h"

/* The lines of removed objects are dropped, oldest first, beyond one of these. */
#define KEPT_MAX   500
#define KEPT_BYTES (4u * 1024 * 1024)

/* A removed object and its last line. */
struct kept {
	struct local_news news;
	STAILQ_ENTRY(kept) entry;
	struct event_head head;
	char *namespace, *keys[EVENT_KEYS], *line;
};

struct local_kept {
	STAILQ_HEAD(, kept) oldest_first;
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

/* Without print: the line exists already. */
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
	n->type->print(l, n, t);
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

static void
free_kept(struct local *l, struct kept *k)
{
	local_changes_remove(l, &k->news);
	for (size_t i = 0; i < EVENT_KEYS; i++)
		free(k->keys[i]);
	free(k->namespace);
	free(k->line);
	free(k);
}

static void
drop_oldest(struct local *l)
{
	struct local_kept *kept = l->kept;
	struct kept *k = STAILQ_FIRST(&kept->oldest_first);

	STAILQ_REMOVE_HEAD(&kept->oldest_first, entry);
	kept->n--;
	kept->bytes -= strlen(k->line);
	free_kept(l, k);
}

/* Takes over line. */
static struct kept *
new_kept(const struct event_head *h, char *line)
{
	struct kept *k = mem_new(struct kept);

	k->line = line;
	k->head = *h;
	str_set(&k->namespace, h->namespace);
	k->head.namespace = k->namespace;
	for (size_t i = 0; i < EVENT_KEYS; i++) {
		str_set(&k->keys[i], h->keys[i]);
		k->head.keys[i] = k->keys[i];
	}
	return k;
}

void
local_event_keep(struct local *l, struct local_news *n, const struct local_news_type *type,
    const char *event, uint64_t index)
{
	struct local_kept *kept = l->kept;
	struct text line = { 0 };
	struct event_head h;
	struct kept *k;

	n->type = type;
	local_event_head(l, n, &h);
	h.type = event;
	print_line(l, n, &h, index, &line);
	k = new_kept(&h, line.text);
	local_changes_remove(l, n);
	local_changes_put(l, &k->news, &kept_news, index);
	STAILQ_INSERT_TAIL(&kept->oldest_first, k, entry);
	kept->n++;
	kept->bytes += strlen(k->line);
	while (kept->n > KEPT_MAX || kept->bytes > KEPT_BYTES)
		drop_oldest(l);
}

void
local_events_init(struct local *l)
{
	l->kept = mem_new(struct local_kept);
	STAILQ_INIT(&l->kept->oldest_first);
}

void
local_events_free(struct local *l)
{
	while (l->kept->n > 0)
		drop_oldest(l);
	free(l->kept);
}
