/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: reads Nomad's agent configuration into the two records of proto/agent_config.h. Runs
 * in: the launcher's configuration child; in the launcher for the defaults.
 */
#ifndef DROVER_CONFIG_CONFIG_H
#define DROVER_CONFIG_CONFIG_H

#include "common/config_map.h"
#include "common/err.h"

/* config_defaults.c */
/* Sets *config and *policy to the values of an agent without a configuration file. With dev, to
 * those of `drover agent -dev`: raw_exec is enabled, and tasks may get SYS_ADMIN and the other
 * capabilities that a CSI plugin may need. */
void config_defaults(struct agent_config *config, struct agent_policy *policy, bool dev);

/*
 * Hides one more path, such as a configuration file, from exec tasks. Returns 0, also if it was
 * hidden already; -ENAMETOOLONG; -ENOSPC if there are CONFIG_MASKS_MAX.
 */
int policy_mask_add(struct agent_policy *policy, const char *path);

/*
 * Gets the problems of a configuration. text is "file:line:column: sentence"; for an error, two
 * more lines show the place. Set problem and arg; after CONFIG_PROBLEMS_MAX only the counts grow.
 */
#define CONFIG_PROBLEMS_MAX 100
struct config_sink {
	void (*problem)(void *arg, bool is_error, const char *text);
	void *arg;
	unsigned n_problems, n_errors;
};

/* Reports one problem. */
void config_say(struct config_sink *sink, bool is_error, const char *text);

/*
 * Reads the text of one configuration file (Nomad's agent HCL, or JSON if it starts with '{') and
 * overrides the current values, as a later file overrides an earlier one. name is used in the
 * problems. Unknown blocks and attributes are warnings. The file itself and the key of tls {} are
 * hidden from tasks. Returns 0, or -EINVAL after errors were reported.
 */
int config_parse(const char *text, size_t len, const char *name, struct agent_config *config,
    struct agent_policy *policy, struct config_sink *sink);

/*
 * config_check.c: checks the combination of all files; called after the last one. Leaves out host
 * volumes inside others that tasks can write, with a warning, and hides paths also where chroot_env
 * puts them. Returns 0, or -EINVAL after errors were reported.
 */
int config_check(
    struct agent_config *config, struct agent_policy *policy, struct config_sink *sink);

/* Whether a file of this name in a configuration directory is read: *.hcl and *.json, but no hidden
 * ones; in the order of strcmp(3). For scandir(3). */
struct dirent;
int config_is_name(const struct dirent *entry);
int config_compare_names(const struct dirent **a, const struct dirent **b);

#endif
