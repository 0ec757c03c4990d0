// SPDX-License-Identifier: Apache-2.0
/* api_doctor.c: /v1/agent/volumes: what this node knows about volumes, every disagreement in it,
 * and repairs. Runs in: supervisor. */
#include "supervisor/api/api_doctor.h"

#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/http/api_list.h"
#include "supervisor/volume/volumes.h"

#define AGAIN_USEC 1000000 /* between two looks at what a repair has done */
#define LOOKS_MAX  10

struct doctor {
	struct sup *sup;
	struct api_req *req;
	const struct doctor_source *source;
	bool fix;
	json_t *tried; /* a key for each repair that has begun, with the problem and its volume */
	unsigned looks;
	struct sup_timer again;
};

static void look(void *arg);

/* Returns whether the request is for this volume. */
static bool
is_requested(const struct api_req *req, const json_t *page)
{
	const char *id = api_query(req, "id");

	return api_namespace_fits(req, volume_page_text(page, "Namespace")) &&
	       (!id || strcmp(id, volume_page_text(page, "ID")) == 0);
}

static char *
key_of(const json_t *page, const json_t *problem)
{
	return mem_printf("%s/%s %s %s", volume_page_text(page, "Namespace"),
	    volume_page_text(page, "ID"), volume_page_text(problem, "Kind"),
	    volume_page_text(problem, "Object"));
}

static void
try_fix(struct doctor *d, json_t *page, json_t *problem)
{
	cleanup_free char *key = key_of(page, problem);
	struct journal_about about = { .namespace = volume_page_text(page, "Namespace"),
		.volume = volume_page_text(page, "ID") };

	if (!json_is_true(json_object_get(problem, "Fixable")) || json_object_get(d->tried, key) ||
	    (!volume_page_fix(d->sup, page, problem) &&
		!(d->source && d->source->fix(d->sup, page, problem))))
		return;
	journal_info(JOURNAL_VOLUME, &about, "volume %s: repairs at an operator's request: %s",
	    about.volume, volume_page_text(problem, "Text"));
	(void)json_object_set_new(d->tried, key,
	    json_pack("{s:O, s:O, s:O, s:O}", "ID", json_object_get(page, "ID"), "Namespace",
		json_object_get(page, "Namespace"), "Kind", json_object_get(problem, "Kind"),
		"Text", json_object_get(problem, "Text")));
}

/* Calls fn for each problem of each page. */
static void
each_problem(
    struct doctor *d, json_t *pages, void (*fn)(struct doctor *d, json_t *page, json_t *problem))
{
	json_t *page, *problem;
	size_t i, j;

	json_array_foreach (pages, i, page)
		json_array_foreach (volume_page_list(page, "Problems"), j, problem)
			fn(d, page, problem);
}

static void
note_left(struct doctor *d, json_t *page, json_t *problem)
{
	cleanup_free char *key = key_of(page, problem);
	json_t *tried = json_object_get(d->tried, key);

	if (tried)
		(void)json_object_set_new(tried, "Done", json_false());
}

/* Notes which repairs have succeeded: their problems are not found any more. Returns whether all
 * have. */
static bool
note_done(struct doctor *d, json_t *pages)
{
	const char *key;
	json_t *tried;
	bool all = true;

	json_object_foreach (d->tried, key, tried)
		(void)json_object_set_new(tried, "Done", json_true());
	each_problem(d, pages, note_left);
	json_object_foreach (d->tried, key, tried)
		all &= json_is_true(json_object_get(tried, "Done"));
	return all;
}

static void
answer(struct doctor *d, json_t *pages)
{
	json_t *repairs = json_array(), *tried;
	const char *key;

	json_object_foreach (d->tried, key, tried)
		(void)json_array_append(repairs, tried);
	api_reply_json(d->req, json_pack("{s:b, s:o, s:o}", "ClaimsKnown", d->source != NULL,
				   "Volumes", pages, "Repairs", repairs));
	if (d->fix)
		volumes_compare_soon(d->sup);
	json_decref(d->tried);
	free(d);
}

static json_t *
make_pages(struct doctor *d, const struct volume_facts *f)
{
	json_t *others = json_array(), *pages = json_array(), *page;
	size_t i, known;

	if (d->source)
		d->source->add_pages(d->sup, f, others);
	known = json_array_size(others);
	volume_page_add_others(d->sup, f, others);
	json_array_foreach (others, i, page) {
		if (d->source && i >= known)
			volume_page_problem(page, "not-registered", "", false,
			    "register it again, or stop what uses it",
			    "no volume of this id is registered");
		if (is_requested(d->req, page))
			(void)json_array_append(pages, page);
	}
	json_decref(others);
	return pages;
}

static void
on_facts(struct sup *sup, void *arg, struct volume_facts *f)
{
	struct doctor *d = arg;
	size_t tried = json_object_size(d->tried);
	json_t *pages = make_pages(d, f);
	bool all;

	volume_facts_free(f);
	if (d->fix)
		each_problem(d, pages, try_fix);
	all = note_done(d, pages);
	if (d->fix && ++d->looks < LOOKS_MAX && (!all || json_object_size(d->tried) > tried)) {
		json_decref(pages);
		sup_timer_set(sup, &d->again, CLOCK_MONOTONIC, AGAIN_USEC, look, d);
		return;
	}
	answer(d, pages);
}

static void
look(void *arg)
{
	struct strings plugins = { 0 };
	struct doctor *d = arg;

	volume_page_plugins(d->sup, &plugins);
	if (d->source)
		d->source->add_plugins(d->sup, &plugins);
	volume_facts_collect(d->sup, &plugins, on_facts, d);
	strings_done(&plugins);
}

void
api_doctor_run(struct sup *sup, struct api_req *req, const struct doctor_source *source, bool fix)
{
	struct doctor *d = mem_new(struct doctor);

	*d = (struct doctor){ .sup = sup, .req = req, .source = source, .fix = fix };
	d->tried = json_object();
	look(d);
}

void
api_get_doctor(struct sup *sup, struct api_req *req)
{
	api_doctor_run(sup, req, NULL, false);
}

void
api_put_doctor(struct sup *sup, struct api_req *req)
{
	api_doctor_run(sup, req, NULL, true);
}
