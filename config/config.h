/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config.h: reads Nomad's agent configuration into the two records of proto/agent_config.h. Runs
 * in: the launcher's configuration child, and its defaults in the launcher.
 */
#ifndef DROVER_CONFIG_CONFIG_H
#define DROVER_CONFIG_CONFIG_H

#include "common/config_map.h"
#include "common/err.h"

/* What an agent without any configuration gets; dev as `drover agent -dev` wants it (raw_exec on,
 * SYS_ADMIN and what a CSI plugin may need besides grantable). */
void config_defaults(struct agent_config *config, struct agent_policy *policy, bool dev);

/*
 * Covers one path more inside exec tasks, such as a configuration file's. 0, also if it was covered
 * already; -ENAMETOOLONG; -ENOSPC when there are CONFIG_MASKS_MAX.
 */
int policy_mask_add(struct agent_policy *policy, const char *path);

/*
 * Reads one configuration file's text (Nomad's agent HCL, or JSON when it starts with '{') over
 * what is there already, as a later file overrides an earlier one. name stands in errors:
 * "file:line:column: expected …". What is not known is no error: a sentence per unknown block or
 * attribute goes to warn(arg, sentence). The file and the key of tls {} are masked. Returns 0, or
 * with *e set -EINVAL, -ENAMETOOLONG, or -ENOSPC when there are more paths to mask than
 * CONFIG_MASKS_MAX.
 */
int config_parse(const char *text, size_t len, const char *name, struct agent_config *config,
    struct agent_policy *policy, void (*warn)(void *arg, const char *sentence), void *arg,
    struct err *e);

/*
 * Checks what several files say together; called after the last one. Host volumes below others that
 * tasks may write are left out, with a sentence to warn(arg, sentence). What is masked is masked
 * where chroot_env puts it, too. Returns 0, or with *e set -EINVAL for settings of exec that
 * contradict each other, -ENAMETOOLONG or -ENOSPC for a path more to mask.
 */
int config_check(struct agent_config *config, struct agent_policy *policy,
    void (*warn)(void *arg, const char *sentence), void *arg, struct err *e);

#endif
