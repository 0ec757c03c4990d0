/* SPDX-License-Identifier: Apache-2.0 */
/*
 * cli_namespace.h: the namespace of requests. Without -namespace and its environment variables,
 * lists show all namespaces, and an id of any namespace is found. Runs in: cli.
 */
#ifndef DROVER_CLI_CLI_NAMESPACE_H
#define DROVER_CLI_CLI_NAMESPACE_H

#include <jansson.h>
#include <stdbool.h>

struct cli;

/* Sets cli->namespace from DROVER_NAMESPACE or NOMAD_NAMESPACE, unless the flag has set it. */
void cli_namespace_init(struct cli *cli);
/* Returns target with the namespace of this request as a parameter; the caller frees it. */
char *cli_namespace_target(const struct cli *cli, const char *method, const char *target);
/* The requests that follow are about this object: uses its namespace, if it has one. Without effect
 * if the operator has chosen one namespace. */
void cli_namespace_use(struct cli *cli, const json_t *object);
/* Returns whether objects of a list have to be shown with their namespace: all are asked for, and
 * not all are in "default". */
bool cli_namespace_shown(const struct cli *cli, const json_t *list);

#endif
