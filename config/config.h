/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: reads Nomad's agent configuration into the two records of proto/agent_config.h. Runs
 * in: the launcher's configuration child; in the launcher for the defaults.
 */
#ifndef DROVER_CONFIG_CONFIG_H
#define DROVER_CONFIG_CONFIG_H

#include "common/config_map.h"
#include "common/err.h"

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
 * Reads the text of one configuration file (Nomad's agent HCL, or JSON if it starts with '{') and
 * overrides the current values, as a later file overrides an earlier one. name is used in errors:
 * "file:line:column: expected …". Unknown blocks and attributes are not errors: a sentence for each
 * goes to warn(arg, sentence). The file itself and the key of tls {} are hidden from tasks. Returns
 * 0, or with *e -EINVAL, -ENAMETOOLONG, or -ENOSPC for more than CONFIG_MASKS_MAX paths to hide.
 */
int config_parse(const char *text, size_t len, const char *name, struct agent_config *config,
    struct agent_policy *policy, void (*warn)(void *arg, const char *sentence), void *arg,
    struct err *e);

/*
 * Checks the combination of all files; called after the last one. Leaves out host volumes inside
 * others that tasks can write, with a sentence to warn(arg, sentence), and hides paths also where
 * chroot_env puts them. Returns 0, or with *e -EINVAL for contradicting settings of exec,
 * -ENAMETOOLONG or -ENOSPC for one more path to hide.
 */
int config_check(struct agent_config *config, struct agent_policy *policy,
    void (*warn)(void *arg, const char *sentence), void *arg, struct err *e);

#endif
