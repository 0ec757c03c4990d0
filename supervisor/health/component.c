// SPDX-License-Identifier: Apache-2.0
/* component.c: the results of probes, by component. Runs in: supervisor. */
#include "supervisor/health/component.h"

#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/mem.h"
#include "model/engine/containers.h"
#include "model/engine/walk.h"

static const char *const state_names[] = {
	[HEALTH_UNKNOWN] = "unknown",
	[HEALTH_OK] = "ok",
	[HEALTH_DEGRADED] = "degraded",
	[HEALTH_FAILED] = "failed",
	[HEALTH_HUNG] = "hung",
};

const char *
health_state_name(enum health_state state)
{
	return state_names[state];
}

struct component *
component_find(const struct components *all, const char *name)
{
	struct component *c;

	TAILQ_FOREACH (c, all, link)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

static struct component *
add_component(struct components *all, const char *name)
{
	struct component *c = mem_new(struct component);

	*c = (struct component){ .name = mem_strdup(name) };
	TAILQ_INSERT_TAIL(all, c, link);
	return c;
}

/* Returns NULL if this probe has a worse result already. */
static struct component *
set_state(struct components *all, const char *name, enum health_state state, const char *sentence)
{
	struct component *c = component_find(all, name);

	if (!c)
		c = add_component(all, name);
	if (c->seen && c->state > state)
		return NULL;
	c->seen = true;
	if (c->state != state || c->since_ns == 0)
		c->since_ns = clock_real_ns();
	c->state = state;
	str_set(&c->sentence, sentence);
	return c;
}

void
component_report(struct components *all, const char *name, enum health_state state,
    uint64_t took_ms, const char *sentence)
{
	struct component *c = set_state(all, name, state, sentence);

	if (!c || state == HEALTH_UNKNOWN)
		return;
	c->checked_ns = clock_real_ns();
	c->took_ms = took_ms;
	if (state > HEALTH_OK) {
		str_set(&c->error, sentence);
		c->error_ns = c->checked_ns;
	}
}

void
component_keep(
    struct components *all, const char *name, enum health_state state, const char *sentence)
{
	(void)set_state(all, name, state, sentence);
}

bool
component_has_turned(const struct component *c, bool told_bad)
{
	return c->state != HEALTH_UNKNOWN && (c->state >= HEALTH_FAILED) != told_bad;
}

void
components_begin(struct components *all)
{
	struct component *c;

	TAILQ_FOREACH (c, all, link)
		c->seen = false;
}

static void
component_free(struct components *all, struct component *c)
{
	TAILQ_REMOVE(all, c, link);
	free(c->name);
	free(c->sentence);
	free(c->error);
	free(c);
}

void
components_sweep(struct components *all)
{
	struct component *c, *next;

	TAILQ_FOREACH_SAFE (c, all, link, next)
		if (!c->seen)
			component_free(all, c);
}

void
components_free(struct components *all)
{
	components_begin(all);
	components_sweep(all);
}

enum health_state
components_state(const struct components *all, const struct component **ret)
{
	enum health_state worst = HEALTH_OK;
	const struct component *c;

	*ret = NULL;
	TAILQ_FOREACH (c, all, link) {
		if (c->state <= worst)
			continue;
		worst = c->state;
		*ret = worst >= HEALTH_FAILED ? c : NULL;
	}
	return worst;
}

static void
put_time(json_t *o, const char *key, int64_t ns)
{
	char text[RFC3339_SIZE];

	if (ns == 0)
		return;
	time_format(ns, text);
	(void)json_object_set_new(o, key, json_string(text));
}

json_t *
components_describe(const struct components *all)
{
	json_t *list = json_object();
	const struct component *c;

	TAILQ_FOREACH (c, all, link) {
		json_t *o = json_pack("{s:s, s:I}", "state", health_state_name(c->state),
		    "duration_ms", (json_int_t)c->took_ms);

		put_time(o, "since", c->since_ns);
		put_time(o, "checked", c->checked_ns);
		if (c->sentence)
			(void)json_object_set_new(o, "message", json_string(c->sentence));
		if (c->error) {
			(void)json_object_set_new(o, "last_error", json_string(c->error));
			put_time(o, "last_error_at", c->error_ns);
		}
		(void)json_object_set_new(list, c->name, o);
	}
	return list;
}
