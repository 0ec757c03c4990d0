/* SPDX-License-Identifier: Apache-2.0 */
/* env_name.h: names of environment variables. Runs in: supervisor, job-parser. */
#ifndef DROVER_COMMON_ENV_NAME_H
#define DROVER_COMMON_ENV_NAME_H

/* Replaces in place, by '_', the characters that no variable's name has in a task. */
void env_name_clean(char *name);

#endif
