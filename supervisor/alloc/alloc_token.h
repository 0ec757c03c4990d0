/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_token.h: the tokens of an alloc's tasks, for the four files that share them:
 * alloc_identity.c has the tokens, token_record.c keeps them in state.db, hook_identity.c requests
 * them, task_tokens.c gives new tokens to running tasks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_TOKEN_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_TOKEN_H

#include "supervisor/alloc/alloc_identity.h"
#include "supervisor/alloc/alloc_state.h"

struct task_files;

struct token {
	struct task_runner *tr;
	const char *task;                     /* its name */
	const struct workload_identity *spec; /* both of the version with which the alloc began */
	char *jwt;                            /* NULL: not signed yet */
	int64_t signed_ns, life_ns;           /* by this node's clock; life 0: it does not expire */
	uint64_t half_ms, renew_ms, end_ms;   /* CLOCK_BOOTTIME, if it expires */
	bool given;  /* the running task has it, or its next start will have it */
	bool giving; /* its file is being written, or its change_mode is being applied */
	bool late;   /* an event has reported that it could not be renewed */
};

struct alloc_identities {
	struct alloc_runner *ar;
	struct sup_timer timer;
	void (*on_time)(void *identities); /* of hook_identity.c */
	bool asking;                       /* a request to the source is pending */
	bool waiting;                      /* the hook waits for the first tokens */
	bool told;                         /* an event has reported that wait */
	unsigned failures, file_failures;
	uint64_t begun_ms;
	size_t n;
	struct token v[];
};

/* The state of hook identity for an alloc and for a task. */
struct identity_state {
	struct alloc_identities *tokens; /* NULL: no task wants a token */
};
struct identity_task_state {
	struct task_files *files; /* new tokens that are being written; NULL: none */
};
struct identity_state *identity_state(const struct alloc_runner *ar);
struct identity_task_state *identity_task_state(const struct task_runner *tr);

/* alloc_identity.c: sets the times of its renewal and end. age_ns: since it was signed. */
void token_set_times(struct token *t, int64_t age_ns);
/* It is time to request or renew it. */
bool token_is_wanted(const struct token *t);
/* It is not signed or has expired: the task cannot start. */
bool token_is_missing(const struct token *t);

/* token_record.c: reads the token from the record of the last supervisor, if it has it. */
void token_restore(struct token *t, const struct alloc_record *kept);

/* After ms, hook_identity.c gives new tokens to running tasks and requests tokens that are due. */
void tokens_wake(struct alloc_identities *ids, uint64_t ms);

/* task_tokens.c: gives a running task its new tokens. */
void task_tokens_give(struct alloc_identities *ids, struct task_runner *tr);
/* Callbacks of struct task_hook. */
void task_tokens_filled(struct task_runner *tr);
void task_tokens_runs(struct task_runner *tr);
void task_tokens_released(struct task_runner *tr);

#endif
