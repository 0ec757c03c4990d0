/* SPDX-License-Identifier: Apache-2.0 */
/* cli_template.h: prints the API's answers with a template (-t, -template). Runs in: cli. */
#ifndef DROVER_CLI_CLI_TEMPLATE_H
#define DROVER_CLI_CLI_TEMPLATE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* Answers are printed with the template of this flag from now on; the texts stay the caller's. */
void cli_template_use(const char *name, const char *text);
bool cli_template_used(void);
/* Prints the value and a line break. Returns 0, or -EINVAL with *e if the template is wrong, or
 * -EIO. */
int cli_template_print(const json_t *value, struct err *e);

#endif
