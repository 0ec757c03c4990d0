/* SPDX-License-Identifier: Apache-2.0 */
/* cli_file.h: reads the files that operators pass to commands. Runs in: cli. */
#ifndef DROVER_CLI_CLI_FILE_H
#define DROVER_CLI_CLI_FILE_H

#include <jansson.h>
#include <stdbool.h>

#include "common/err.h"

/* A file's whole text, or stdin's. */
struct cli_file {
	const char *name; /* the path, or "standard input" */
	bool is_stdin;
	char *text; /* with a NUL after its len bytes */
	size_t len;
};

/* Reads the file at path, or stdin for "-", of at most 32 MiB. Returns 0, or -errno with the
 * sentence. cli_file_done() releases the text in both cases. */
int cli_file_open(const char *path, struct cli_file *ret, struct err *e);
/* As cli_file_open(), but an empty file is an error. */
int cli_file_open_filled(const char *path, struct cli_file *ret, struct err *e);
void cli_file_done(struct cli_file *file);
/* Whether the text begins with "{". */
bool cli_file_is_json(const struct cli_file *file);
/* Parses the text as one JSON object into *ret, a new reference. Errors name line and column. */
int cli_file_json(const struct cli_file *file, json_t **ret, struct err *e);

/* Reads a file, or stdin for "-", as one JSON object into *ret, a new reference. `what` names the
 * expected contents ("job"). Errors name file, line and column. */
int cli_file_read(const char *path, const char *what, json_t **ret, struct err *e);

/* Writes a new file of these lines, which end with a newline; comments: also those that are
 * comments. Returns 0, or -errno with the sentence: -EEXIST if there is such a file. */
int cli_file_write_example(const char *path, const char *lines, bool comments, struct err *e);

struct hcl;
/* Prints the problems of a file in HCL on stderr, each with its line. Returns 0, or -EINVAL with a
 * sentence if there are errors. */
int cli_file_problems(const struct cli_file *file, struct hcl *h, struct err *e);

#endif
