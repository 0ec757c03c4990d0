/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_token.h: the tokens of an alloc's tasks, for the three that work at them:
 * alloc_identity.c keeps them, hook_identity.c asks for them, task_tokens.c gives new ones to tasks
 * that run. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_TOKEN_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_TOKEN_H

#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/alloc/alloc_runner.h"

struct token {
	struct task_runner *tr;
	const struct workload_identity *spec; /* in the version that the alloc began with */
	char *jwt;                            /* NULL: none yet */
	int64_t signed_ns, life_ns;           /* by this node's clock; life 0: for ever */
	uint64_t half_ms, renew_ms, end_ms;   /* since boot, with a life */
	bool given;  /* the task that runs has it, or its next start will */
	bool giving; /* it is being written, or what its change makes happen is under way */
	bool late;   /* an event has said that it could not be renewed */
};

struct alloc_identities {
	struct alloc_runner *ar;
	struct sd_event_source *timer;
	bool asking;  /* the source */
	bool waiting; /* the hook, for the first tokens */
	bool told;    /* what it waits for */
	unsigned failures, file_failures;
	uint64_t begun_ms;
	size_t n;
	struct token v[];
};

/* alloc_identity.c: age_ns: since it was signed. */
void token_set_times(struct token *t, int64_t age_ns);
/* Is it time to ask for it, or to ask for it again? */
bool token_is_wanted(const struct token *t);
/* Without one like this no task starts. */
bool token_is_missing(const struct token *t);

/* hook_identity.c: gives what is not given, and asks for what is wanted, in ms from now. */
void alloc_tokens_wake(struct alloc_identities *ids, uint64_t ms);
/* Asks no more. */
void alloc_tokens_quit(struct alloc_identities *ids);

/* task_tokens.c: those that are new to a task that runs; again when they are written. */
void task_tokens_give(struct alloc_identities *ids, struct task_runner *tr);

#endif
