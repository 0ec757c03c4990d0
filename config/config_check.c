// SPDX-License-Identifier: Apache-2.0
/* config_check.c: checks the combination of all files of a configuration. Runs in: the launcher's
 * configuration child, cli. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "config/config_reader.h"

/* If chroot_env puts a directory or file with masked paths at another path, masks them there
 * too. */
static int
mask_moved_paths(struct agent_policy *policy)
{
	const uint32_t n_masks = policy->n_masks;
	char moved[2 * CONFIG_PATH_SIZE];
	int r = 0;

	for (uint32_t i = 0; i < policy->n_chroot_env; i++) {
		const char *source = policy->chroot_env[i].source;
		size_t len = source[1] ? strlen(source) : 0;

		for (uint32_t k = 0; k < n_masks && r == 0; k++) {
			const char *mask = policy->masks[k];

			if (strncmp(mask, source, len) != 0 || (mask[len] && mask[len] != '/'))
				continue;
			(void)snprintf(
			    moved, sizeof moved, "%s%s", policy->chroot_env[i].target, mask + len);
			r = policy_mask_add(policy, moved);
		}
	}
	return r;
}

/* Returns a host volume that tasks may write and that contains v's path, or NULL. */
static const struct config_host_volume *
find_outer_volume(const struct agent_config *config, const struct config_host_volume *v)
{
	for (uint32_t i = 0; i < config->n_host_volumes; i++) {
		const struct config_host_volume *outer = &config->host_volumes[i];
		size_t len = strlen(outer->path);

		if (!outer->read_only && strncmp(v->path, outer->path, len) == 0 &&
		    (v->path[len] == '/' || (len == 1 && v->path[len])))
			return outer;
	}
	return NULL;
}

/* A task that may write the outer volume could replace the inner one's directory with another one
 * or a link, which the agent would open at its next start. */
static void
drop_inner_volumes(
    struct agent_config *config, struct agent_policy *policy, struct config_sink *sink)
{
	uint32_t n = 0;

	for (uint32_t i = 0; i < config->n_host_volumes; i++) {
		const struct config_host_volume *v = &config->host_volumes[i];
		const struct config_host_volume *outer = find_outer_volume(config, v);
		char sentence[ERR_MSG_SIZE];

		if (!outer) {
			policy->host_volumes[n++] = *v;
			continue;
		}
		(void)snprintf(sentence, sizeof sentence,
		    "host_volume \"%s\" is left out: its path is below that of host_volume \"%s\", "
		    "which tasks can write: make that one read_only, or use another path",
		    v->name, outer->name);
		config_say(sink, false, sentence);
	}
	config->n_host_volumes = policy->n_host_volumes = n;
	memcpy(config->host_volumes, policy->host_volumes, sizeof config->host_volumes);
}

static void
check_host_modes(const struct agent_config *config, struct config_sink *sink)
{
	const char *mode = config->default_pid_host && !config->allow_host_pid   ? "pid"
			   : config->default_ipc_host && !config->allow_host_ipc ? "ipc"
										 : NULL;
	char text[ERR_MSG_SIZE];

	if (!mode)
		return;
	(void)snprintf(text, sizeof text,
	    "plugin \"exec\": default_%s_mode is \"host\", which needs allow_host_%s = true; that "
	    "%s anyone who may submit a job",
	    mode, mode, mode[0] == 'p' ? "gives root to" : "opens the host's shared memory to");
	config_say(sink, true, text);
}

/* The block and the signals have no effect without each other. */
static void
check_leave(struct agent_config *config, struct config_sink *sink)
{
	bool leaves = config->leave_on_interrupt || config->leave_on_terminate;

	if (config->drain_on_shutdown)
		config->drain_signals = (config->leave_on_interrupt ? 1u << SIGINT : 0) |
					(config->leave_on_terminate ? 1u << SIGTERM : 0);
	if (leaves && !config->drain_on_shutdown)
		config_say(sink, false,
		    "leave_on_interrupt and leave_on_terminate have no effect without client { "
		    "drain_on_shutdown { } }: tasks keep running when the agent ends");
	if (!leaves && config->drain_on_shutdown)
		config_say(sink, false,
		    "drain_on_shutdown has no effect without leave_on_terminate = true or "
		    "leave_on_interrupt = true: tasks keep running when the agent ends");
	if (config->ephemeral && config->n_servers == 0)
		config_say(sink, false,
		    "ephemeral has no effect without servers: only these can forget a node");
	if (config->retry_max > 0 && config->n_servers == 0)
		config_say(sink, false, "retry_max has no effect without servers");
}

static void
check_expirations(const struct agent_config *config, struct config_sink *sink)
{
	if (config->acl_expiration_min_ms > config->acl_expiration_max_ms)
		config_say(sink, true,
		    "acl: token_min_expiration_ttl is longer than token_max_expiration_ttl");
}

int
config_check(struct agent_config *config, struct agent_policy *policy, struct config_sink *sink)
{
	unsigned n_errors = sink->n_errors;

	if (mask_moved_paths(policy) < 0)
		config_say(sink, true,
		    "chroot_env: hide password files and keys where it puts them (at most 128 "
		    "paths)");
	drop_inner_volumes(config, policy, sink);
	check_host_modes(config, sink);
	config_check_files(config, sink);
	check_leave(config, sink);
	check_expirations(config, sink);
	config_check_template(config, sink);
	return sink->n_errors > n_errors ? -EINVAL : 0;
}
