/* SPDX-License-Identifier: Apache-2.0 */
/* cli_api.h: sends requests to the agent's API and reads fields of its JSON. Runs in: cli. */
#ifndef DROVER_CLI_CLI_API_H
#define DROVER_CLI_CLI_API_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>

#include "cli/cli.h"
#include "cli/cli_http.h"
#include "common/cleanup.h"
#include "model/engine/field.h"

/* Chooses the agent: of -address, of DROVER_ADDR, or of NOMAD_ADDR if that is a unix socket, so
 * that scripts written for Nomad keep working. Returns 0 or -EINVAL. */
int cli_api_choose(struct cli *cli, struct err *e);
/* Connects to it. Returns a descriptor, or -errno with a sentence. */
int cli_api_connect(const struct cli *cli, struct err *e);
/* Sends one request and reads the answer as JSON into *ret (a new reference; NULL for an empty
 * answer; ret may be NULL). cli->status is the HTTP status, 0 if there was no answer. Returns 0;
 * -ENOENT for 404 and -EREMOTEIO for other error statuses, with the answer's text in *e and in full
 * in cli->refusal; -errno if the agent could not be reached. If the agent has answered before, a
 * GET whose connection is refused or lost is retried for some seconds, because agents are
 * restarted. */
int cli_api_get(struct cli *cli, const char *target, json_t **ret, struct err *e);
int cli_api_send(struct cli *cli, const char *method, const char *target, const json_t *body,
    json_t **ret, struct err *e);
/* As cli_api_send(), for a request made by json_pack(), which is taken over. It is NULL if a word
 * of the operator in it is not valid UTF-8: then nothing is sent, and -EINVAL is returned. */
int cli_api_send_new(struct cli *cli, const char *method, const char *target, json_t *body,
    json_t **ret, struct err *e);
/* Sets *e and cli->refusal for an answer with an error status and this body. Returns e->code. */
int cli_api_refusal(struct cli *cli, int status, const char *text, struct err *e);
/* Sends a GET and prints the answer, for -json. */
int cli_api_print(struct cli *cli, const char *target, struct err *e);
/* For a page about the answer: prints the answer and returns 0 if -json is set, else leaves it in
 * *ret (a new reference) and returns 1; or -errno with *e. */
int cli_api_fetch(struct cli *cli, const char *target, json_t **ret, struct err *e);
/* Prints JSON, indented. Returns 0 or -errno. */
int cli_json_print(const json_t *value, struct err *e);

/* Sends a request whose answer is a stream; the caller reads it with cli_http_recv() and closes the
 * descriptor. */
int cli_api_open(
    struct cli *cli, const char *method, const char *target, const char *body, struct err *e);
/* Adds to *e what to do if the agent could not be reached. Returns e->code. */
int cli_api_explain(struct cli *cli, struct err *e);

/* Formats a request path with percent-encoded arguments: cli_target("/v1/job/%s?purge=%s", id,
 * "true"). Accepts only %s. Never NULL. */
char *cli_target(const char *fmt, ...);

/* Returns the member at path ("Job/TaskGroups") below value. If it is missing or has another type,
 * the result is "", 0, false or NULL, so that an unexpected answer shows an empty cell. */
json_t *cli_json_get(const json_t *value, const char *path);
const char *cli_json_str(const json_t *value, const char *path);
json_int_t cli_json_int(const json_t *value, const char *path);
bool cli_json_true(const json_t *value, const char *path);
/* Sets members of an object from KEY=VALUE words, which it cuts. Returns 0 or -EINVAL with *e. */
int cli_json_add_pairs(json_t *object, int n, char **words, struct err *e);
/* Returns a list of these strings; NULL if one is not valid UTF-8. */
json_t *cli_json_strings(char *const *v, size_t n);
/* Returns the keys of an object, sorted. The caller frees the array, not the keys. */
const char **cli_json_keys(const json_t *object, size_t *ret_n);
/* Returns nanoseconds since 1970 from an integer (nanoseconds) or an RFC 3339 text; 0 if there is
 * none. */
int64_t cli_json_time_ns(const json_t *value, const char *path);

/* A kind of object: its API path, and the fields that identify one. */
struct cli_kind {
	const char *name;  /* "allocation" */
	const char *list;  /* "/v1/allocations?prefix=%s" */
	const char *all;   /* the path without prefix, for names of allocations */
	const char *named; /* a second field to search, or NULL */
	bool uuid;         /* ids are UUIDs: a full one is used unchecked */
};

extern const struct cli_kind cli_kind_alloc, cli_kind_deployment, cli_kind_eval, cli_kind_job,
    cli_kind_node, cli_kind_plugin, cli_kind_volume;

/* Finds the full id for the operator's word: an id, or a unique prefix of at least 2 characters.
 * Returns 0 and *ret_id, which the caller frees; -ENOENT; -ENOTUNIQ with the candidates in *e. */
int cli_id_resolve(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, char **ret_id, struct err *e);
/* As cli_id_resolve(), but also checks that an object with a full UUID exists. */
int cli_id_search(
    struct cli *cli, const struct cli_kind *kind, const char *wanted, char **ret_id, struct err *e);
/* Lists all objects; or shows or changes the one with this id. Returns an exit code, or -errno with
 * *e. */
typedef int cli_list_fn(struct cli *cli, struct err *e);
typedef int cli_id_fn(struct cli *cli, const char *id, struct err *e);
/* For verbs: calls fn with the full id for the operator's word, and prints an error. Returns the
 * exit code. */
int cli_with_id(struct cli *cli, const struct cli_kind *kind, const char *wanted, cli_id_fn *fn);
/* As cli_with_id() for the first argument; without one calls list. */
int cli_list_or_show(struct cli *cli, const struct cli_kind *kind, int argc, char **argv,
    cli_list_fn *list, cli_id_fn *show);
/* Returns the id of the agent's node. */
int cli_id_self(struct cli *cli, char **ret_id, struct err *e);

#endif
