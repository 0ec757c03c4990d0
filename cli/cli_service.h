/* SPDX-License-Identifier: Apache-2.0 */
/* cli_service.h: the table of check results, for every command that shows them. Runs in: cli. */
#ifndef DROVER_CLI_CLI_SERVICE_H
#define DROVER_CLI_CLI_SERVICE_H

#include "cli/cli_list.h"

/* The answer of /v1/client/allocation/ID/checks. */
extern const struct cli_list cli_checks;

#endif
