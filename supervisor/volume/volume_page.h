/* SPDX-License-Identifier: Apache-2.0 */
/*
 * volume_page.h: what this node knows about one volume, and every disagreement in it, as JSON for
 * `drover volume doctor`: its mounts (rows), mountinfo, the directories, the plugin. Claims are
 * added by the source of work that has them. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_VOLUME_VOLUME_PAGE_H
#define DROVER_SUPERVISOR_VOLUME_VOLUME_PAGE_H

#include <jansson.h>
#include <stdbool.h>

#include "supervisor/volume/volume_facts.h"

struct volume_subject {
	const char *namespace, *id, *plugin, *external_id;
};

/* Adds the plugins of all volumes that have rows. */
void volume_page_plugins(struct sup *sup, struct strings *ret);
/* Makes the page of a volume; the caller owns it. */
json_t *volume_page_make(
    struct sup *sup, const struct volume_facts *f, const struct volume_subject *s);
/* Adds, to an array, the pages of volumes that have rows, mounts or directories on this node, but
 * no page there. */
void volume_page_add_others(struct sup *sup, const struct volume_facts *f, json_t *pages);

/* Adds a disagreement about an object (an alloc's id, a path, a node's id, or ""): a sentence, and
 * what repairs it. is_fixable: volume_page_fix() or its caller can do that. */
void volume_page_problem(json_t *page, const char *kind, const char *object, bool is_fixable,
    const char *advice, const char *fmt, ...) __attribute__((format(printf, 6, 7)));
/* Begins to repair a problem of a page. Returns false if this is not known here. */
bool volume_page_fix(struct sup *sup, const json_t *page, const json_t *problem);

/* Return a member that is a text, or ""; and the array of this name. */
const char *volume_page_text(const json_t *object, const char *name);
json_t *volume_page_list(const json_t *page, const char *name);
/* Returns the text as JSON, also if it is not UTF-8. */
json_t *volume_page_string(const char *text);

#endif
