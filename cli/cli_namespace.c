// SPDX-License-Identifier: Apache-2.0
/* cli_namespace.c: the namespace of requests. Runs in: cli. */
#include "cli/cli_namespace.h"

#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "common/mem.h"

/* Lists of which all namespaces are shown. Other paths name one object, whose namespace is known or
 * is "default". */
static const char *const lists[] = { "/v1/allocations", "/v1/deployments", "/v1/evaluations",
	"/v1/event/stream", "/v1/jobs", "/v1/services", "/v1/vars", "/v1/volumes" };

void
cli_namespace_init(struct cli *cli)
{
	if (!cli->namespace)
		cli->namespace = getenv("DROVER_NAMESPACE");
	if (!cli->namespace || !*cli->namespace)
		cli->namespace = getenv("NOMAD_NAMESPACE");
	if (cli->namespace && !*cli->namespace)
		cli->namespace = NULL;
}

static bool
is_all(const char *namespace)
{
	return !namespace || strcmp(namespace, "*") == 0;
}

static bool
is_list(const char *target)
{
	size_t len = strcspn(target, "?");

	for (size_t i = 0; i < ELEMENTSOF(lists); i++)
		if (strlen(lists[i]) == len && strncmp(lists[i], target, len) == 0)
			return true;
	return strncmp(target, "/v1/service/", strlen("/v1/service/")) == 0;
}

char *
cli_namespace_target(const struct cli *cli, const char *method, const char *target)
{
	const char *sep = strchr(target, '?') ? "&" : "?";
	cleanup_free char *param = NULL;

	if (strstr(target, "?namespace=") || strstr(target, "&namespace="))
		return mem_strdup(target);
	if (!is_all(cli->namespace))
		param = cli_target("namespace=%s", cli->namespace);
	else if (strcmp(method, "GET") == 0 && is_list(target))
		param = mem_strdup("namespace=*");
	return param ? mem_printf("%s%s%s", target, sep, param) : mem_strdup(target);
}

void
cli_namespace_use(struct cli *cli, const json_t *object)
{
	const char *namespace = cli_json_str(object, "Namespace");

	if (is_all(cli->namespace) && *namespace)
		cli->namespace = mem_strdup(namespace); /* for the rest of this process */
}

bool
cli_namespace_shown(const struct cli *cli, const json_t *list)
{
	const json_t *item;
	size_t i;

	if (!is_all(cli->namespace))
		return false;
	json_array_foreach (list, i, item) {
		const char *namespace = cli_json_str(item, "Namespace");

		if (*namespace && strcmp(namespace, "default") != 0)
			return true;
	}
	return false;
}
