/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h: one run of the command: its settings, its verbs, and the flags of a verb. Runs in: cli. */
#ifndef DROVER_CLI_CLI_H
#define DROVER_CLI_CLI_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"

#define CLI_ADDRESS_DEFAULT "unix:///run/drover/drover.sock"

/* Exit codes of drover, returned by the verbs. */
enum cli_exit {
	CLI_OK = 0,
	CLI_PLAN_FAILED = 255, /* for job plan, where 1 is a result */
	CLI_FAILED = 1,        /* any error, also a wrong command line */
	CLI_UNPLACED = 2,      /* the evaluation failed or could not place everything */
	CLI_DISAGREES = 2,     /* volume doctor: something disagrees, or could not be repaired */
};

#define CLI_TIMEOUT_MS 60000 /* timeout of one request without -timeout */

struct cli {
	const char *socket_path; /* path of the control socket; NULL: the address is of TCP */
	const char *address;     /* the address as the operator wrote it, for messages */
	const char *namespace;   /* of requests; NULL or "*": all */
	bool json;               /* print the API's answer as JSON */
	bool verbose;            /* full ids and exact times */
	uint64_t timeout_ms;     /* timeout of one request */
	int id_len;              /* characters of a UUID that are shown, for "%.*s" */
	int status;              /* HTTP status of the last answer, 0 if there was none */
	char next_token[512];    /* of the page after the last answer; "": it was the last page */
	bool answered; /* the agent has answered before: a refused connection is a restart */
	char *headers; /* more headers of requests, each with its end of line, or NULL */
	char *refusal; /* body of the last answer that was an error, or NULL */
};

enum cli_flag_kind {
	CLI_FLAG_BOOL,     /* bool */
	CLI_FLAG_STRING,   /* const char * */
	CLI_FLAG_NUMBER,   /* int64_t, not negative */
	CLI_FLAG_DURATION, /* uint64_t milliseconds, written 30s, 1h5m */
	CLI_FLAG_STRINGS,  /* struct strings: each time that it is given */
	CLI_FLAG_SECRETS,  /* as CLI_FLAG_STRINGS; the value is overwritten in argv */
	CLI_FLAG_REFUSED,  /* one of Nomad's that drover has not, and does not list: help says why
			    */
};

struct cli_flag {
	const char *name;
	enum cli_flag_kind kind;
	void *value;
	const char *arg; /* placeholder of the value in the help */
	const char *help;
};

#define CLI_COMMAND INT_MAX /* the words after the first are a command with its own flags */

struct cli_verb {
	const char *noun, *verb; /* verb is NULL if the command is one word */
	int (*run)(struct cli *cli, int argc, char **argv);
	const struct cli_flag *flags; /* ends with a NULL name */
	int min_args, max_args;       /* -1: run() gets the words unchecked; or CLI_COMMAND */
	const char *usage;            /* the arguments after the verb, for the help */
	const char *help;             /* one line */
};

/* Parses the flags in argv, anywhere before "--", and leaves the other words in argv[0..). -name
 * and --name are the same; a value follows '=' or is the next word. Returns the number of words
 * left, or -EINVAL with a sentence. */
int cli_flags_parse(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e);
/* As cli_flags_parse(), but stops at the first word: it and everything after it are words. */
int cli_flags_parse_command(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e);

/* Returns the flag with this name of `len` characters, NULL if no table has it. */
const struct cli_flag *cli_flag_find(
    const struct cli_flag *const *tables, size_t n, const char *name, size_t len);

/* Parses a number of 0 or more. -EINVAL with a sentence that names `what`: a flag or an argument.
 */
int cli_number(const char *what, const char *word, int64_t *ret, struct err *e);

/* Prints each line of the text on stderr, after "drover: ", and returns CLI_FAILED. */
int cli_fail_text(const char *text);
/* Prints the error: the agent's whole refusal, or the sentence. Returns CLI_FAILED. */
int cli_fail(struct cli *cli, const struct err *e);
/* Finds a program of drover: beside this command (a build tree), else where it is installed:
 * PREFIX/bin and PREFIX/libexec. Returns 0, or -errno with *e. */
int cli_find_program(const char *name, char *path, size_t size, struct err *e);
/* Protects commands that cannot be undone: if wanted is only a prefix of found, the operator must
 * confirm at the terminal or pass yes. Returns 0, or -EINVAL with a sentence. */
int cli_confirm_prefix(
    const char *kind, const char *wanted, const char *found, bool yes, struct err *e);
/* Asks on the terminal. Returns 1 for yes, 0 for no, -ENOTTY without a terminal. */
int cli_ask(const char *question);
/* Asks on the terminal for a line, which the caller frees. Returns 0, -ENOTTY without a terminal,
 * -ENODATA at the end of the input. */
int cli_ask_text(const char *question, const char *choices, char **ret);

#endif
