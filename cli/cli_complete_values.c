// SPDX-License-Identifier: Apache-2.0
/* cli_complete_values.c: the values that a word can have: ids from the agent, and fixed ones. Runs
 * in: cli. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_alloc.h"
#include "cli/cli_api.h"
#include "cli/cli_complete.h"
#include "cli/cli_print.h"
#include "common/mem.h"

#define MOST "per_page=200" /* objects that are asked for, if the word is still empty */

/* Lists of objects, with the members that are offered and those that describe them. */
static const struct list {
	const char *name, *target, *id, *also, *about;
	bool uuid;
} lists[] = {
	{ "ACCESSOR", "/v1/acl/tokens", "AccessorID", NULL, "Name", false },
	{ "ALLOC", "/v1/allocations", "ID", "Name", "ClientStatus", true },
	{ "DEPLOYMENT", "/v1/deployments", "ID", NULL, "JobID", true },
	{ "EVALUATION", "/v1/evaluations", "ID", NULL, "JobID", true },
	{ "JOB", "/v1/jobs", "ID", NULL, "Status", false },
	{ "NAMESPACE", "/v1/namespaces", "Name", NULL, "Description", false },
	{ "NODE", "/v1/nodes", "ID", "Name", "Status", true },
	{ "PLUGIN", "/v1/plugins?type=csi", "ID", NULL, "Provider", false },
	{ "POLICY", "/v1/acl/policies", "Name", NULL, "Description", false },
	{ "ROLE", "/v1/acl/roles", "ID", NULL, "Name", false },
	{ "VARIABLE", "/v1/vars", "Path", NULL, "Namespace", false },
	{ "VOLUME", "/v1/volumes?type=csi", "ID", NULL, "PluginID", false },
};

/* Words with fixed values. */
static const struct fixed {
	const char *name, *values;
} fixed[] = {
	{ "LEVEL", "debug info warn error" },
	{ "METHOD", "GET PUT POST DELETE" },
	{ "SIGNAL",
	    "SIGABRT SIGALRM SIGBUS SIGCHLD SIGCONT SIGFPE SIGHUP SIGILL SIGINT SIGKILL SIGPIPE "
	    "SIGQUIT SIGSEGV SIGSTOP "
	    "SIGTERM SIGTRAP SIGTSTP SIGTTIN SIGTTOU SIGUSR1 SIGUSR2 SIGWINCH SIGXCPU SIGXFSZ" },
	{ "STATUS", "blocked canceled complete failed pending" },
	{ "TOPIC[:KEY]", "Allocation Deployment Evaluation Job Node Service" },
	{ "TYPE", "csi" },
};

/* Asks the agent; an error offers nothing. The caller frees the answer. */
static json_t *
ask(const struct cli_line *line, const char *target)
{
	json_t *answer = NULL;
	struct err ignored;

	return cli_api_get(line->cli, target, &answer, &ignored) < 0 ? NULL : answer;
}

/* Returns the target of the list for the word; the caller frees it. */
static char *
list_target(const struct cli_line *line, const struct list *list)
{
	const char *sep = strchr(list->target, '?') ? "&" : "?";
	size_t len = strlen(line->word);
	cleanup_free char *prefix = NULL, *query = NULL;

	if (len == 0)
		return mem_printf(
		    "%s%s" MOST "%s", list->target, sep, list->uuid ? "&reverse=true" : "");
	/* Names cannot be asked for by prefix. */
	if (list->also && strspn(line->word, "0123456789abcdef-") < len)
		return mem_strdup(list->target);
	/* UUIDs are listed by whole bytes. */
	prefix = mem_printf("%.*s", (int)(list->uuid ? len & ~(size_t)1 : len), line->word);
	query = cli_target("prefix=%s", prefix);
	return mem_printf("%s%s%s", list->target, sep, query);
}

/* Offers an id in the length in which pages show it, or whole if the word is longer. */
static void
offer_id(const struct cli_line *line, const struct list *list, const char *id, const char *about)
{
	bool cut =
	    list->uuid && strlen(line->word) <= (size_t)line->cli->id_len && strlen(id) == 36;
	cleanup_free char *shown = mem_printf("%.*s", cut ? line->cli->id_len : 1000, id);

	cli_offer(line, shown, about);
}

static void
offer_list(const struct cli_line *line, const struct list *list)
{
	cleanup_free char *target = list_target(line, list);
	cleanup_json json_t *all = ask(line, target);
	const json_t *object;
	size_t i;

	json_array_foreach (all, i, object) {
		const char *also = list->also ? cli_json_str(object, list->also) : "";
		cleanup_free char *about =
		    mem_printf("%s%s%s", also, *also ? " " : "", cli_json_str(object, list->about));

		offer_id(line, list, cli_json_str(object, list->id), about);
		if (*line->word)
			cli_offer(line, also, cli_json_str(object, list->about));
	}
}

static void
offer_fixed(const struct cli_line *line, const char *values)
{
	char value[32];
	int n = 0;

	for (; sscanf(values, " %31s%n", value, &n) == 1; values += n)
		cli_offer(line, value, "");
}

/* Returns the object that a word of the line names, with the target of one such object; NULL if
 * there is none. */
static json_t *
named_object(
    const struct cli_line *line, const char *name, const struct cli_kind *kind, const char *one)
{
	const char *word = cli_line_value(line, name);
	cleanup_free char *id = NULL, *target = NULL;
	struct err ignored;

	if (!word || cli_id_resolve(line->cli, kind, word, &id, &ignored) < 0)
		return NULL;
	target = cli_target(one, id);
	return ask(line, target);
}

/* Returns the job that the line names, itself or by one of its allocations. */
static json_t *
named_job(const struct cli_line *line)
{
	json_t *job = named_object(line, "JOB", &cli_kind_job, "/v1/job/%s");
	cleanup_json json_t *alloc =
	    job ? NULL : named_object(line, "ALLOC", &cli_kind_alloc, "/v1/allocation/%s");

	return job ? job : json_incref(cli_json_get(alloc, "Job"));
}

static void
offer_tasks(const struct cli_line *line)
{
	cleanup_json json_t *alloc =
	    named_object(line, "ALLOC", &cli_kind_alloc, "/v1/allocation/%s");
	cleanup_json json_t *job = alloc ? NULL : named_job(line);
	const char *wanted = cli_line_value(line, "GROUP") ?: cli_json_str(alloc, "TaskGroup");
	const json_t *groups = cli_json_get(alloc ? cli_json_get(alloc, "Job") : job, "TaskGroups");
	const json_t *group, *task;
	size_t i, k;

	json_array_foreach (groups, i, group) {
		if (*wanted && strcmp(wanted, cli_json_str(group, "Name")) != 0)
			continue;
		json_array_foreach (cli_json_get(group, "Tasks"), k, task)
			cli_offer(line, cli_json_str(task, "Name"), cli_json_str(task, "Driver"));
	}
}

static void
offer_groups(const struct cli_line *line)
{
	cleanup_json json_t *job = named_job(line);
	cleanup_json json_t *deployment =
	    job ? NULL
		: named_object(line, "DEPLOYMENT", &cli_kind_deployment, "/v1/deployment/%s");
	const json_t *group;
	const char *name;
	size_t i;

	json_array_foreach (cli_json_get(job, "TaskGroups"), i, group)
		cli_offer(line, cli_json_str(group, "Name"), "");
	json_object_foreach (cli_json_get(deployment, "TaskGroups"), name, group)
		cli_offer(line, name, "");
}

/* Offers the numbers of the job's versions, or their tags. */
static void
offer_versions(const struct cli_line *line, bool tags)
{
	cleanup_json json_t *answer =
	    named_object(line, "JOB", &cli_kind_job, "/v1/job/%s/versions");
	char number[32], time[CLI_TIME_SIZE];
	const json_t *job;
	size_t i;

	json_array_foreach (cli_json_get(answer, "Versions"), i, job) {
		(void)snprintf(
		    number, sizeof number, "%lld", (long long)cli_json_int(job, "Version"));
		if (tags)
			cli_offer(line, cli_json_str(job, "VersionTag/Name"),
			    cli_json_str(job, "VersionTag/Description"));
		else
			cli_offer(line, number,
			    cli_time(line->cli, cli_json_time_ns(job, "SubmitTime"), time));
	}
}

static void
offer_numbers(const struct cli_line *line)
{
	offer_versions(line, false);
}

static void
offer_tags(const struct cli_line *line)
{
	offer_versions(line, true);
}

static void
offer_services(const struct cli_line *line)
{
	cleanup_json json_t *all = ask(line, "/v1/services");
	const json_t *namespace, *service;
	size_t i, k;

	json_array_foreach (all, i, namespace)
		json_array_foreach (cli_json_get(namespace, "Services"), k, service)
			cli_offer(line, cli_json_str(service, "ServiceName"),
			    cli_json_str(namespace, "Namespace"));
}

/* The id of an instance of the service that the line names, or else of any object. */
static void
offer_any_ids(const struct cli_line *line)
{
	const char *service = cli_line_value(line, "SERVICE");
	cleanup_free char *target = cli_target("/v1/service/%s", service ?: "");
	cleanup_json json_t *all = service ? ask(line, target) : NULL;
	const json_t *one;
	size_t i;

	json_array_foreach (all, i, one)
		cli_offer(line, cli_json_str(one, "ID"), cli_json_str(one, "Address"));
	for (i = 0; !service && i < ELEMENTSOF(lists); i++)
		offer_list(line, &lists[i]);
}

static void
offer_actions(const struct cli_line *line)
{
	cleanup_json json_t *actions =
	    named_object(line, "JOB", &cli_kind_job, "/v1/job/%s/actions");
	const json_t *action;
	size_t i;

	json_array_foreach (actions, i, action)
		cli_offer(line, cli_json_str(action, "Name"), cli_json_str(action, "TaskName"));
}

static void
offer_servers(const struct cli_line *line)
{
	cleanup_json json_t *members = ask(line, "/v1/agent/members");
	const json_t *member;
	size_t i;

	json_array_foreach (cli_json_get(members, "Members"), i, member)
		cli_offer(line, cli_json_str(member, "Name"), cli_json_str(member, "Status"));
	cli_offer(line, "leader", "");
}

static void
offer_snapshots(const struct cli_line *line)
{
	cleanup_free char *target =
	    cli_target("/v1/volumes/snapshot?plugin_id=%s", cli_line_value(line, "PLUGIN") ?: "");
	cleanup_json json_t *answer = ask(line, target);
	const json_t *one;
	size_t i;

	json_array_foreach (cli_json_get(answer, "Snapshots"), i, one)
		cli_offer(
		    line, cli_json_str(one, "ID"), cli_json_str(one, "ExternalSourceVolumeID"));
}

/* Keys of the node's metadata. */
static void
offer_keys(const struct cli_line *line)
{
	cleanup_json json_t *answer = ask(line, "/v1/client/metadata");
	const json_t *value;
	const char *key;

	json_object_foreach (cli_json_get(answer, "Meta"), key, value)
		cli_offer(line, key, json_string_value(value) ?: "");
}

/* Offers "key=" for the metadata that a parameterized job takes, or else of the node. */
static void
offer_pairs(const struct cli_line *line)
{
	static const char *const members[] = { "MetaRequired", "MetaOptional" };
	cleanup_json json_t *job = named_object(line, "JOB", &cli_kind_job, "/v1/job/%s");
	const json_t *parameters = cli_json_get(job, "ParameterizedJob"), *key;
	size_t k;

	for (size_t i = 0; i < ELEMENTSOF(members); i++) {
		json_array_foreach (cli_json_get(parameters, members[i]), k, key) {
			cleanup_free char *pair = mem_printf("%s=", json_string_value(key) ?: "");

			cli_offer(line, pair, members[i] + strlen("Meta"));
		}
	}
}

/* Names of files here, or in the allocation that the line names. */
static void
offer_paths(const struct cli_line *line)
{
	const char *slash = strrchr(line->word, '/');
	cleanup_free char *dir =
	    mem_printf("%.*s", slash ? (int)(slash + 1 - line->word) : 0, line->word);
	cleanup_free char *id = NULL, *target = NULL;
	cleanup_json json_t *files = NULL;
	const json_t *file;
	struct err ignored;
	size_t i;

	if (!cli_line_value(line, "ALLOC")) {
		(void)printf(":files\n");
		return;
	}
	if (cli_id_resolve(
		line->cli, &cli_kind_alloc, cli_line_value(line, "ALLOC"), &id, &ignored) < 0)
		return;
	target = cli_target("/v1/client/fs/ls/%s?path=%s", id, *dir ? dir : "/");
	files = ask(line, target);
	json_array_foreach (files, i, file) {
		cleanup_free char *path = mem_printf("%s%s%s", dir, cli_json_str(file, "Name"),
		    cli_json_true(file, "IsDir") ? "/" : "");

		cli_offer(line, path, "");
	}
}

static void
offer_files(const struct cli_line *line)
{
	(void)line;
	(void)printf(":files\n");
}

/* Words whose values need more than a list. */
static const struct source {
	const char *name;
	void (*offer)(const struct cli_line *line);
} sources[] = {
	{ "ACTION", offer_actions },
	{ "DIR", offer_files },
	{ "FILE", offer_files },
	{ "FILE.json", offer_files },
	{ "GROUP", offer_groups },
	{ "ID", offer_any_ids },
	{ "KEY", offer_keys },
	{ "KEY=VALUE", offer_pairs },
	{ "PATH", offer_paths },
	{ "SERVER", offer_servers },
	{ "SERVICE", offer_services },
	{ "SNAPSHOT", offer_snapshots },
	{ "TAG", offer_tags },
	{ "TASK", offer_tasks },
	{ "VERSION", offer_numbers },
};

bool
cli_complete_value(const struct cli_line *line, const char *name)
{
	for (size_t i = 0; i < ELEMENTSOF(lists); i++) {
		if (strcmp(lists[i].name, name) == 0) {
			offer_list(line, &lists[i]);
			return true;
		}
	}
	for (size_t i = 0; i < ELEMENTSOF(fixed); i++) {
		if (strcmp(fixed[i].name, name) == 0) {
			offer_fixed(line, fixed[i].values);
			return true;
		}
	}
	for (size_t i = 0; i < ELEMENTSOF(sources); i++) {
		if (strcmp(sources[i].name, name) == 0) {
			sources[i].offer(line);
			return true;
		}
	}
	return false;
}
