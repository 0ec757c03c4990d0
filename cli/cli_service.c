// SPDX-License-Identifier: Apache-2.0
/* cli_service.c: drover service list, info and delete, drover alloc checks. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_list.h"
#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_service.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/duration.h"

static void
print_services(const json_t *namespaces)
{
	struct cli_table *t = CLI_TABLE("Service Name", "Namespace", "Tags");
	const json_t *namespace, *service;
	size_t i, k;

	json_array_foreach (namespaces, i, namespace) {
		json_array_foreach (cli_json_get(namespace, "Services"), k, service) {
			cleanup_free char *tags = cli_join(cli_json_get(service, "Tags"), ",");

			cli_table_row(t);
			cli_cell(t, "%s", cli_json_str(service, "ServiceName"));
			cli_cell(t, "%s", cli_json_str(namespace, "Namespace"));
			cli_cell(t, "%s", tags);
		}
	}
	cli_table_print(t);
}

int
cli_service_list(struct cli *cli, int argc, char **argv)
{
	cleanup_json json_t *list = NULL;
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	r = cli->json ? cli_api_print(cli, "/v1/services", &e)
		      : cli_api_get(cli, "/v1/services", &list, &e);
	if (r == 0 && !cli->json) {
		if (json_array_size(list) == 0)
			cli_say(cli, "No services");
		else
			print_services(list);
	}
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

static void
print_address(struct cli_table *t, const json_t *service)
{
	const char *address = cli_json_str(service, "Address");
	json_int_t port = cli_json_int(service, "Port");

	if (port == 0)
		cli_cell(t, "%s", address);
	else
		cli_cell(
		    t, strchr(address, ':') ? "[%s]:%lld" : "%s:%lld", address, (long long)port);
}

static void
instance_cells(const struct cli *cli, struct cli_table *t, const json_t *service)
{
	cleanup_free char *tags = cli_join(cli_json_get(service, "Tags"), ",");

	cli_cell(t, "%s", cli_json_str(service, "JobID"));
	print_address(t, service);
	cli_cell(t, "%s", tags);
	cli_cell(t, "%.*s", cli->id_len, cli_json_str(service, "NodeID"));
	cli_cell(t, "%.*s", cli->id_len, cli_json_str(service, "AllocID"));
	if (cli->verbose)
		cli_cell(t, "%s", cli_json_str(service, "ID"));
}

static const struct cli_list instances = {
	CLI_HEADS("Job ID", "Address", "?Tags", "?Node ID", "Alloc ID"),
	.cells = instance_cells,
};

static const struct cli_list verbose_instances = {
	CLI_HEADS("Job ID", "Address", "Tags", "Node ID", "Alloc ID", "ID"),
	.cells = instance_cells,
};

static bool none; /* the service has no instance */

static void
print_instances(const struct cli *cli, const json_t *list)
{
	none = json_array_size(list) == 0;
	if (!none)
		cli_list_print(cli, cli->verbose ? &verbose_instances : &instances, list);
}

int
cli_service_info(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/service/%s", argv[0]);
	struct err e = { 0 };
	int r;

	(void)argc;
	r = cli_list_show(cli, target, print_instances, &e);
	if (r == 0 && none)
		r = err_say(&e, -ENOENT, "no %sservice \"%s\" exists",
		    cli_list_options.filter ? "such " : "", argv[0]);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}

/* Uses the namespace of the instance, which its id does not contain. */
static int
find_instance(struct cli *cli, const char *service, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/service/%s", service);
	cleanup_json json_t *list = NULL;
	const json_t *one;
	size_t i;
	int r = cli_api_get(cli, target, &list, e);

	json_array_foreach (list, i, one) {
		if (strcmp(cli_json_str(one, "ID"), id) == 0) {
			cli_namespace_use(cli, one);
			return 0;
		}
	}
	return r < 0 ? r
		     : err_say(e, -ENOENT,
			   "service \"%s\" has no instance \"%s\": drover service info -verbose "
			   "lists them",
			   service, id);
}

int
cli_service_delete(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = cli_target("/v1/service/%s/%s", argv[0], argv[1]);
	struct err e = { 0 };
	int r = find_instance(cli, argv[0], argv[1], &e);

	(void)argc;
	if (r == 0)
		r = cli_api_send(cli, "DELETE", target, NULL, NULL, &e);
	if (r < 0)
		return cli_fail(cli, &e);
	cli_say(cli, "Instance \"%s\" of service \"%s\" is removed", argv[1], argv[0]);
	return CLI_OK;
}

static void
check_cells(const struct cli *cli, struct cli_table *t, const json_t *check)
{
	char when[CLI_TIME_SIZE];

	CLI_TEXT_CELLS(t, check, "Service", "Task", "Check", "Mode", "Status");
	if (cli_json_int(check, "StatusCode") != 0)
		cli_cell(t, "%lld", (long long)cli_json_int(check, "StatusCode"));
	else
		cli_cell(t, "%s", "");
	cli_cell(
	    t, "%s", cli_time(cli, cli_scale(cli_json_int(check, "Timestamp"), NS_PER_S), when));
	cli_cell(t, "%s", cli_json_str(check, "Output"));
}

const struct cli_list cli_checks = {
	.none = "No checks",
	CLI_HEADS("Service", "?Task", "Check", "?Mode", "Status", "?Code", "?Last", "Output"),
	.cells = check_cells,
};

static int
show_checks(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/client/allocation/%s/checks", id);

	return cli_list_get(cli, &cli_checks, target, e);
}

int
cli_alloc_checks(struct cli *cli, int argc, char **argv)
{
	return cli_with_id(cli, &cli_kind_alloc, argv[0], show_checks);
}
