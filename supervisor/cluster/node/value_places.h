/* SPDX-License-Identifier: Apache-2.0 */
/*
 * value_places.h: the places for blocking queries of templates. A blocking query occupies a stream
 * to the server all the time, so their number is limited; jobs that want more share them: while all
 * are taken, the job with the most gives one up to a job that would not get more than it. Runs in:
 * supervisor.
 */
#ifndef DROVER_SUPERVISOR_CLUSTER_NODE_VALUE_PLACES_H
#define DROVER_SUPERVISOR_CLUSTER_NODE_VALUE_PLACES_H

#include <stdbool.h>

#include "common/list.h"

struct place_job;

struct value_places {
	unsigned max, taken;
	LIST_HEAD(, place_job) jobs;
};

/* The place of one query, which the query's owner embeds. */
struct value_place {
	TAILQ_ENTRY(value_place) link; /* in job.taken, if taken */
	struct place_job *job;
	bool taken;
};

/* The caller embeds *all. It holds memory only while places exist, so there is no function that
 * frees it: value_place_done() of the last place of a job frees the job. */
void value_places_init(struct value_places *all, unsigned max);

/* job: namespace and name. */
void value_place_init(struct value_places *all, struct value_place *p, const char *job);
void value_place_done(struct value_places *all, struct value_place *p);

/* Takes a place. Returns false if all are taken and its job has its share. *ret_loser is the one
 * that has lost its place for it, or NULL. */
bool value_place_take(
    struct value_places *all, struct value_place *p, struct value_place **ret_loser);
/* Gives its place up, if it has one. */
void value_place_leave(struct value_places *all, struct value_place *p);

#endif
