/* SPDX-License-Identifier: Apache-2.0 */
/*
 * component.h: what a probe has found about each part of this node: "disk", "state", "clock",
 * "dns", "helper/NAME", "driver/NAME", "plugin/ID", "volume/NAME". Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_HEALTH_COMPONENT_H
#define DROVER_SUPERVISOR_HEALTH_COMPONENT_H

#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/list.h"

enum health_state {
	HEALTH_UNKNOWN, /* it was not checked, because something that it needs has failed */
	HEALTH_OK,
	HEALTH_DEGRADED, /* it works; the sentence says what will fail soon, or has changed */
	HEALTH_FAILED,
	HEALTH_HUNG, /* no result before its deadline */
};

struct component {
	TAILQ_ENTRY(component) link;
	char *name;
	enum health_state state;
	char *sentence;     /* NULL: ok */
	int64_t since_ns;   /* of the state; times are CLOCK_REALTIME */
	int64_t checked_ns; /* 0: never */
	uint64_t took_ms;
	char *error; /* the last sentence of a state that is neither ok nor unknown */
	int64_t error_ns;
	bool seen; /* by the present probe */
};

TAILQ_HEAD(components, component);

/* Returns "ok" and so on, for the API. */
const char *health_state_name(enum health_state state);

/* Records a result, which replaces that of the last probe; of several results in one probe the
 * worst counts. sentence: NULL for HEALTH_OK. A component that is unknown was not checked now. */
void component_report(struct components *all, const char *name, enum health_state state,
    uint64_t took_ms, const char *sentence);
/* Records that the component is not checked in this probe, and is as bad as it was. */
void component_keep(
    struct components *all, const char *name, enum health_state state, const char *sentence);
/* Returns whether the component has become bad (failed or hung), or good again, since it was told
 * to be bad or not. A component that is unknown is neither. */
bool component_has_turned(const struct component *c, bool told_bad);
/* Returns NULL if there is no such component. */
struct component *component_find(const struct components *all, const char *name);
/* Marks all as not seen; then, after a probe, removes those that it has not seen. */
void components_begin(struct components *all);
void components_sweep(struct components *all);
void components_free(struct components *all);

/* Returns the worst state. With a failed or hung one, *ret is it; else NULL. */
enum health_state components_state(const struct components *all, const struct component **ret);
/* Returns an object with a member for each component, for the API. */
json_t *components_describe(const struct components *all);

#endif
