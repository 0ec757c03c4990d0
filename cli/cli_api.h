/* SPDX-License-Identifier: Apache-2.0 */
/* cli_api.h: requests to the agent's API, and what is read out of its JSON. Runs in: drover. */
#ifndef DROVER_CLI_CLI_API_H
#define DROVER_CLI_CLI_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/cli_http.h"
#include "common/cleanup.h"
#include "model/engine/field.h"

/*
 * Sends one request and reads the answer as JSON into *ret (a reference of the caller's; NULL for
 * an empty answer; ret may be NULL). cli->status is the HTTP status, 0 when there was no answer.
 * Returns 0; -ENOENT for 404 and -EREMOTEIO for the other refusals, with the answer's text in *e
 * and whole in cli->refusal; -errno when the agent could not be asked.
 *
 * A GET whose connection is refused or cut is tried again for some seconds once the agent has
 * answered before: agents are restarted.
 */
int cli_api_get(struct cli *cli, const char *target, json_t **ret, struct err *e);
int cli_api_send(struct cli *cli, const char *method, const char *target, const json_t *body,
    json_t **ret, struct err *e);
/* GETs target and prints the answer. For -json. */
int cli_api_print(struct cli *cli, const char *target, struct err *e);
/* Prints any JSON, indented. 0, or -errno. */
int cli_json_print(const json_t *value, struct err *e);

/* A request whose answer is not JSON but a stream: connects, sends, and leaves the rest to
 * cli_http_recv(). The caller closes the descriptor. */
int cli_api_open(
    struct cli *cli, const char *method, const char *target, const char *body, struct err *e);
/* Says what to do when the agent could not be reached. Returns e->code. */
int cli_api_explain(struct cli *cli, struct err *e);

/* A target with its arguments percent-encoded: cli_target("/v1/job/%s?purge=%s", id, "true"). Only
 * %s. Never NULL. */
char *cli_target(const char *fmt, ...);

/*
 * What is at path ("Job/TaskGroups") below value. A missing or mistyped one is "", 0, false or
 * NULL: an agent that says nonsense gives an empty cell, not a crash.
 */
json_t *cli_json_get(const json_t *value, const char *path);
const char *cli_json_str(const json_t *value, const char *path);
json_int_t cli_json_int(const json_t *value, const char *path);
bool cli_json_true(const json_t *value, const char *path);
/* Seconds since 1970 with nanoseconds below, from an integer (nanoseconds) or an RFC 3339 text; 0
 * for none. */
int64_t cli_json_time_ns(const json_t *value, const char *path);

/* What a list holds: where it is asked for, and which fields name one. */
struct cli_kind {
	const char *name;  /* "allocation" */
	const char *list;  /* "/v1/allocations?prefix=%s" */
	const char *all;   /* the same without prefix; for names of allocations */
	const char *named; /* a second field to look in, or NULL */
	bool uuid;         /* ids are UUIDs: a whole one is taken as it is */
};

extern const struct cli_kind cli_kind_alloc, cli_kind_eval, cli_kind_job, cli_kind_node,
    cli_kind_plugin, cli_kind_volume;

/*
 * The whole id of what the operator wrote: itself, or a prefix (of 2 characters at least) that only
 * one has. Returns 0 and *ret_id, the caller's to free; -ENOENT; -ENOTUNIQ after the candidates
 * were named in *e.
 */
int cli_id_resolve(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, char **ret_id, struct err *e);
/* The id of the node that answers. */
int cli_id_self(struct cli *cli, char **ret_id, struct err *e);

#endif
