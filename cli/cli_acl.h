/* SPDX-License-Identifier: Apache-2.0 */
/* cli_acl.h: what the commands about ACL tokens and roles share. Runs in: cli. */
#ifndef DROVER_CLI_CLI_ACL_H
#define DROVER_CLI_CLI_ACL_H

#include "cli/cli_list.h"

/* Prints an answer, which is taken over: by print(), or with -json as it is. */
int cli_acl_show(struct cli *cli, json_t *answer, cli_print_fn *print, struct err *e);
/* Prints a token with its secret. */
void cli_acl_print_token(const struct cli *cli, const json_t *token);
/* Returns the names of linked roles or policies; the caller frees it. */
char *cli_acl_names(const json_t *links);
/* Returns a list of objects with one member each, which are the words; NULL if one is not valid
 * UTF-8. */
json_t *cli_acl_links(const char *member, const struct strings *words);

#endif
