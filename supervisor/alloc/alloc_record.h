/* SPDX-License-Identifier: Apache-2.0 */
/*
 * alloc_record.h: what this node keeps beside an alloc in state.db (sup_alloc.client_json), so that
 * a restarted supervisor continues where this one ended. Fields may be added, but none may change
 * its name or meaning: the next version of the agent reads the same rows. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_ALLOC_ALLOC_RECORD_H
#define DROVER_SUPERVISOR_ALLOC_ALLOC_RECORD_H

#include "supervisor/service/checks.h"
#include "supervisor/table/alloc_table.h"

/* The restart tracker of a task. */
struct tracker_record {
	int64_t count;
	int64_t started_ns; /* of the interval */
};

/* A signed token of a task. */
struct token_record {
	char *task, *name;
	char *sealed;      /* seal.h, as base64 */
	char *token;       /* only in rows of earlier versions, which did not encrypt it */
	int64_t signed_ns; /* by this node's clock */
	int64_t life_ns;   /* 0: for ever */
	bool given;        /* the task has it */
};

/* An artifact of a task that is in its place. */
struct artifact_record {
	char *task, *hash;
};

/* A fetch of an artifact that has begun and is not in its place. boot: the id of the boot then. */
struct fetch_record {
	char *task, *hash, *staging, *boot;
};

/* The digest of a template's output whose change_mode was applied, "": of none. A task has one for
 * each of its templates, in their order. */
struct template_record {
	char *task, *digest;
};

/* The variables with which a task was started, of its templates: sealed (seal.h), as base64. */
struct template_env_record {
	char *task, *sealed;
};

struct alloc_record {
	bool done;             /* its tasks and hooks are over */
	bool destroy;          /* it is to be removed from the node */
	int64_t kill_after_ns; /* when its group's shutdown_delay ends; 0: none has begun */
	MODEL_MAP(struct tracker_record) tasks;
	MODEL_LIST(struct token_record) identities;
	struct check_results checks;
	MODEL_LIST(struct artifact_record) artifacts;
	MODEL_LIST(struct fetch_record) fetches;
	MODEL_LIST(struct template_record) templates;
	MODEL_LIST(struct template_env_record) template_envs;
};
MODEL_DECLARE(tracker_record);
MODEL_DECLARE(token_record);
MODEL_DECLARE(artifact_record);
MODEL_DECLARE(fetch_record);
MODEL_DECLARE(template_record);
MODEL_DECLARE(template_env_record);
MODEL_DECLARE(alloc_record);

/* Reads the record of sa into *ret, which is initialised. An alloc without one has an empty one. */
void alloc_record_read(const struct sup_alloc *sa, struct alloc_record *ret);
/* Replaces the record of sa; its row is written in this turn. */
void alloc_record_write(struct sup *sup, struct sup_alloc *sa, const struct alloc_record *rec);

#endif
