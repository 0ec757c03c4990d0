/* SPDX-License-Identifier: Apache-2.0 */
/* cli_var.h: what the verbs of drover var share. Their errors never have a value. Runs in: cli. */
#ifndef DROVER_CLI_CLI_VAR_H
#define DROVER_CLI_CLI_VAR_H

#include "cli/cli.h"
#include "model/variable.h"

/* cli_var_spec.c */

/* The format of a specification. */
enum cli_var_in { CLI_VAR_IN_UNKNOWN, CLI_VAR_IN_JSON, CLI_VAR_IN_HCL };

/* Whether a word is "@FILE". */
bool cli_var_is_file(const char *word);
/* Reads a specification from "@FILE" or "-" into *ret (initialised): by the end of the file's name,
 * else in this format. Returns 0 or -errno with *e. */
int cli_var_read_spec(const char *word, enum cli_var_in in, struct variable *ret, struct err *e);
/* Changes the variable by words: KEY=VALUE, KEY=@FILE, KEY=- (stdin), KEY= (removes it), and @FILE
 * or - for an object of JSON. */
int cli_var_add_words(int n, char **words, struct variable *var, struct err *e);
/* Sets the path and the namespace, which the command line has, or NULL. A variable that gets
 * another name is a new one, without an index. */
void cli_var_rename(struct variable *var, const char *namespace, const char *path);
/* Returns the word without spaces and slashes around it; the caller frees it. */
char *cli_var_path(const char *word);

/* cli_var_show.c */

/* Prints a variable: -out table, json, hcl or none. */
int cli_var_show(const struct cli *cli, const char *out, const struct variable *var, struct err *e);
/* Checks -out: one of these words, separated by spaces. NULL becomes the first on a terminal, else
 * "json", and with -json "json". "go-template" needs the template of -template and becomes "json",
 * which is then printed with it. Returns 0 or -EINVAL with *e. */
int cli_var_check_out(const struct cli *cli, const char *words, const char *template,
    const char **out, struct err *e);
#define CLI_VAR_TEMPLATE_FLAG(value)                                                               \
	{                                                                                          \
		"template", CLI_FLAG_STRING, value, "TEMPLATE", "the template of -out go-template" \
	}

/* cli_var.c */

/* Refuses the namespace "*". */
int cli_var_check_namespace(const struct cli *cli, struct err *e);
/* Reads the value of -check-index; *ret stays as it is if the flag was not given (NULL). Returns 1,
 * 0 without the flag, or -EINVAL with *e. */
int cli_var_check_index(const char *word, int64_t *ret, struct err *e);
/* Sends a request with the variable (NULL: without body), and reads the variable that is the
 * answer (ret may be NULL). Returns 0; -EEXIST if the answer is a conflict, with the conflicting
 * variable in *ret; else -errno with *e. */
int cli_var_send(struct cli *cli, const char *method, const char *target,
    const struct variable *var, struct variable *ret, struct err *e);
/* Says that the variable on the server has another index than this. Returns -EEXIST. */
int cli_var_say_conflict(
    const struct cli *cli, int64_t index, const struct variable *found, struct err *e);
/* Returns the target of a request for the variable, with a query; the caller frees it. */
char *cli_var_target(const struct variable *var, const char *query);

#endif
