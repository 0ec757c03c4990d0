// SPDX-License-Identifier: Apache-2.0
/* job_finish.c: what Nomad's parser does with a job after reading it: shorthands move to their
 * places, and a few defaults are set. Runs in: cli, job-parser. */
#include <string.h>

#include "common/duration.h"
#include "jobspec/job_block.h"

static bool
is_null(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return !v || json_is_null(v);
}

static void
set_default(json_t *object, const char *name, json_t *value)
{
	if (is_null(object, name))
		json_object_set_new(object, name, value);
	else
		json_decref(value);
}

static json_t *
take_member(json_t *object, const char *name)
{
	json_t *v = json_incref(json_object_get(object, name));

	json_object_del(object, name);
	return v;
}

/* The last of these attributes that is set makes the operator and the value. */
static void
finish_comparison(json_t *c, const char *const *names, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		json_t *v = take_member(c, names[i]);

		if (v && json_string_length(v) > 0) {
			json_object_set_new(c, "Operand", json_string(names[i] + 1));
			json_object_set(c, "RTarget", v);
		}
		json_decref(v);
	}
}

static void
finish_constraint(json_t *c)
{
	static const char *const names[] = { "_version", "_semver", "_regexp", "_set_contains" };
	json_t *hosts, *property;

	finish_comparison(c, names, sizeof names / sizeof names[0]);
	hosts = take_member(c, "_distinct_hosts");
	if (json_is_boolean(hosts)) {
		json_object_set_new(c, "Operand", json_string("distinct_hosts"));
		json_object_set_new(
		    c, "RTarget", json_string(json_is_true(hosts) ? "true" : "false"));
	}
	json_decref(hosts);
	property = take_member(c, "_distinct_property");
	if (json_string_length(property) > 0) {
		json_object_set_new(c, "Operand", json_string("distinct_property"));
		json_object_set(c, "LTarget", property);
	}
	json_decref(property);
	json_decref(take_member(c, "_set_contains_all"));
	json_decref(take_member(c, "_set_contains_any"));
	json_decref(take_member(c, "_is_set"));
	json_decref(take_member(c, "_is_not_set"));
}

static void
finish_affinity(json_t *a)
{
	static const char *const names[] = { "_version", "_semver", "_regexp", "_set_contains_any",
		"_set_contains_all", "_set_contains" };

	finish_comparison(a, names, sizeof names / sizeof names[0]);
}

void
job_finish_rule(const struct job_block *block, json_t *rule)
{
	if (block == &job_block_constraint)
		finish_constraint(rule);
	else if (block == &job_block_affinity)
		finish_affinity(rule);
	else
		return;
	if (json_string_length(json_object_get(rule, "Operand")) == 0)
		json_object_set_new(rule, "Operand", json_string("="));
}

static void
finish_vault(json_t *vault)
{
	if (!json_is_object(vault))
		return;
	set_default(vault, "Env", json_true());
	set_default(vault, "DisableFile", json_false());
	set_default(vault, "ChangeMode", json_string("restart"));
}

/* Ports with a number move to the reserved ones, whose list they replace. */
static void
finish_network(json_t *network)
{
	json_t *ports = json_object_get(network, "DynamicPorts"), *dynamic, *reserved, *port;
	size_t i;

	if (json_array_size(ports) == 0)
		return;
	dynamic = json_array();
	reserved = json_array();
	json_array_foreach (ports, i, port)
		json_array_append(
		    json_integer_value(json_object_get(port, "Value")) > 0 ? reserved : dynamic,
		    port);
	json_object_set_new(network, "DynamicPorts",
	    json_array_size(dynamic) > 0 ? json_incref(dynamic) : json_null());
	json_object_set_new(network, "ReservedPorts",
	    json_array_size(reserved) > 0 ? json_incref(reserved) : json_null());
	json_decref(dynamic);
	json_decref(reserved);
}

static void
finish_networks(json_t *networks)
{
	json_t *network;
	size_t i;

	json_array_foreach (networks, i, network)
		finish_network(network);
}

static void
finish_template(json_t *t)
{
	json_t *script = json_object_get(t, "ChangeScript");

	set_default(t, "ChangeMode", json_string("restart"));
	set_default(t, "Perms", json_string("0644"));
	set_default(t, "Splay", json_integer(5 * NS_PER_S));
	set_default(t, "ErrMissingKey", json_false());
	if (!json_is_object(script))
		return;
	set_default(script, "Args", json_array());
	set_default(script, "Timeout", json_integer(5 * NS_PER_S));
	set_default(script, "FailOnError", json_false());
	set_default(script, "RunOnFirstRender", json_false());
}

/* The first identity without a name, or named "default", has a place of its own. */
static void
finish_identities(json_t *task)
{
	json_t *list = json_object_get(task, "Identities"), *identity;
	size_t i;

	json_array_foreach (list, i, identity) {
		const char *name = json_string_value(json_object_get(identity, "Name"));

		if (*name && strcmp(name, "default") != 0)
			continue;
		json_object_set(task, "Identity", identity);
		json_array_remove(list, i);
		return;
	}
}

static const char *
scaling_type(const char *label)
{
	return strcasecmp(label, "cpu") == 0   ? "vertical_cpu"
	       : strcasecmp(label, "mem") == 0 ? "vertical_mem"
					       : NULL;
}

static void
finish_task_scaling(struct hcl *h, json_t *task)
{
	json_t *list = json_object_get(task, "ScalingPolicies"), *policy;
	struct hcl_range nowhere = { 0 };
	const char *seen[2] = { NULL, NULL };
	size_t i;

	json_array_foreach (list, i, policy) {
		json_t *label = take_member(policy, "_label");
		const char *type = scaling_type(json_string_value(label)), *given;

		given = json_string_value(json_object_get(policy, "Type"));
		if (!type)
			hcl_error(h, nowhere,
			    "a scaling block of a task is named \"cpu\" or \"mem\", not \"%s\"",
			    json_string_value(label));
		else if (seen[0] == type || seen[1] == type)
			hcl_error(h, nowhere, "a task has two scaling blocks \"%s\"",
			    json_string_value(label));
		else if (*given && strcmp(given, type) != 0)
			hcl_error(h, nowhere, "the type of scaling \"%s\" is \"%s\", not \"%s\"",
			    json_string_value(label), type, given);
		else
			json_object_set_new(policy, "Type", json_string(type));
		seen[i % 2] = type;
		json_decref(label);
	}
}

static void
finish_task(struct hcl *h, json_t *task)
{
	json_t *resources = json_object_get(task, "Resources"), *x;
	size_t i;

	finish_networks(json_object_get(resources, "Networks"));
	json_array_foreach (json_object_get(task, "Templates"), i, x)
		finish_template(x);
	finish_vault(json_object_get(task, "Vault"));
	finish_identities(task);
	finish_task_scaling(h, task);
}

/* Those of the group come after the task's own. */
static void
add_secrets(json_t *task, json_t *secrets)
{
	json_t *own = json_object_get(task, "Secrets");

	if (json_array_size(own) == 0)
		json_object_set_new(task, "Secrets", json_copy(secrets));
	else
		json_array_extend(own, secrets);
}

static void
finish_group_scaling(struct hcl *h, json_t *group)
{
	json_t *scaling = json_object_get(group, "Scaling");
	struct hcl_range nowhere = { 0 };
	const char *type;

	if (!json_is_object(scaling))
		return;
	type = json_string_value(json_object_get(scaling, "Type"));
	if (!*type)
		json_object_set_new(scaling, "Type", json_string("horizontal"));
	else if (strcmp(type, "horizontal") != 0)
		hcl_error(h, nowhere,
		    "the scaling of a group has the type \"horizontal\", not \"%s\"", type);
	if (is_null(scaling, "Max"))
		hcl_error(h, nowhere,
		    "the scaling block of group \"%s\" needs the attribute \"max\"",
		    json_string_value(json_object_get(group, "Name")));
}

static void
finish_group(struct hcl *h, json_t *group, json_t *job_vault, json_t *job_secrets)
{
	json_t *vault = take_member(group, "_vault"), *secrets = take_member(group, "_secrets"),
	       *task;
	size_t i;

	finish_networks(json_object_get(group, "Networks"));
	finish_group_scaling(h, group);
	json_array_foreach (json_object_get(group, "Tasks"), i, task) {
		if (is_null(task, "Vault") && json_is_object(vault))
			json_object_set_new(task, "Vault", json_deep_copy(vault));
		if (json_is_array(secrets))
			add_secrets(task, secrets);
		finish_task(h, task);
		if (is_null(task, "Vault") && json_is_object(job_vault))
			json_object_set(task, "Vault", job_vault);
		if (json_is_array(job_secrets))
			add_secrets(task, job_secrets);
	}
	json_decref(vault);
	json_decref(secrets);
}

/* A task outside of a group has a group of its own, before the others. */
static void
make_groups(struct hcl *h, json_t *job, json_t *tasks)
{
	json_t *groups = json_array(), *task;
	size_t i;

	if (json_array_size(tasks) == 0) {
		json_decref(groups);
		return;
	}
	json_array_foreach (tasks, i, task) {
		struct hcl_range nowhere = { 0 };
		struct hcl_body none = { .at = nowhere };
		json_t *group = job_read_block(h, &job_block_task_group, &none, NULL,
		    json_string_value(json_object_get(task, "Name")), nowhere);

		json_object_set_new(group, "Tasks", json_pack("[O]", task));
		json_array_append_new(groups, group);
	}
	json_array_extend(groups, json_object_get(job, "TaskGroups"));
	json_object_set_new(job, "TaskGroups", groups);
}

void
job_finish(struct hcl *h, json_t *job, const char *name)
{
	json_t *vault = take_member(job, "_vault"), *secrets = take_member(job, "_secrets"),
	       *tasks = take_member(job, "_tasks");
	json_t *periodic = json_object_get(job, "Periodic"), *group;
	size_t i;

	set_default(job, "Name", json_string_nocheck(name));
	set_default(job, "ID", json_string_nocheck(name));
	if (json_is_object(periodic) && (!is_null(periodic, "Spec") || !is_null(periodic, "Specs")))
		json_object_set_new(periodic, "SpecType", json_string("cron"));
	finish_vault(vault);
	make_groups(h, job, tasks);
	json_array_foreach (json_object_get(job, "TaskGroups"), i, group)
		finish_group(h, group, vault, secrets);
	json_decref(vault);
	json_decref(secrets);
	json_decref(tasks);
}
