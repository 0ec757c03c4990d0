/* SPDX-License-Identifier: Apache-2.0 */
/* cli.h: one run of the command: its settings, its verbs, and the flags of a verb. Runs in: drover.
 */
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
};

#define CLI_TIMEOUT_MS 60000 /* timeout of one request without -timeout */

struct cli {
	const char *socket_path; /* path of the control socket */
	const char *address;     /* the address as the operator wrote it, for messages */
	bool json;               /* print the API's answer as JSON */
	bool verbose;            /* full ids and exact times */
	uint64_t timeout_ms;     /* timeout of one request */
	int id_len;              /* characters of a UUID that are shown, for "%.*s" */
	int status;              /* HTTP status of the last answer, 0 if there was none */
	bool answered; /* the agent has answered before: a refused connection is a restart */
	char *refusal; /* body of the last answer that was an error, or NULL */
};

enum cli_flag_kind {
	CLI_FLAG_BOOL,     /* bool */
	CLI_FLAG_STRING,   /* const char * */
	CLI_FLAG_NUMBER,   /* int64_t, not negative */
	CLI_FLAG_DURATION, /* uint64_t milliseconds, written 30s, 1h5m */
	CLI_FLAG_STRINGS,  /* struct strings: each time that it is given */
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
	const struct cli_flag *flags; /* ends with a NULL name; NULL: no flags of its own */
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

/* Parses a number of 0 or more. -EINVAL with a sentence that names `what`: a flag or an argument.
 */
int cli_number(const char *what, const char *word, int64_t *ret, struct err *e);

/* Prints one sentence on stderr and returns CLI_FAILED. */
int cli_fail(struct cli *cli, const struct err *e);
/* Protects commands that cannot be undone: if wanted is only a prefix of found, the operator must
 * confirm at the terminal or pass yes. Returns 0, or -EINVAL with a sentence. */
int cli_confirm_prefix(
    const char *kind, const char *wanted, const char *found, bool yes, struct err *e);
/* Asks on the terminal. Returns 1 for yes, 0 for no, -ENOTTY without a terminal. */
int cli_ask(const char *question);

int cli_action(struct cli *cli, int argc, char **argv);
int cli_agent(struct cli *cli, int argc, char **argv);
int cli_alloc_explain(struct cli *cli, int argc, char **argv);
int cli_alloc_exec(struct cli *cli, int argc, char **argv);
int cli_alloc_fs(struct cli *cli, int argc, char **argv);
int cli_alloc_logs(struct cli *cli, int argc, char **argv);
int cli_alloc_restart(struct cli *cli, int argc, char **argv);
int cli_alloc_signal(struct cli *cli, int argc, char **argv);
int cli_alloc_stats(struct cli *cli, int argc, char **argv);
/* cli_service.c */
int cli_alloc_checks(struct cli *cli, int argc, char **argv);
int cli_service_list(struct cli *cli, int argc, char **argv);
int cli_service_info(struct cli *cli, int argc, char **argv);
int cli_alloc_status(struct cli *cli, int argc, char **argv);
int cli_alloc_stop(struct cli *cli, int argc, char **argv);
/* cli_deployment.c */
int cli_deployment_fail(struct cli *cli, int argc, char **argv);
int cli_deployment_list(struct cli *cli, int argc, char **argv);
int cli_deployment_pause(struct cli *cli, int argc, char **argv);
int cli_deployment_promote(struct cli *cli, int argc, char **argv);
int cli_deployment_resume(struct cli *cli, int argc, char **argv);
int cli_deployment_status(struct cli *cli, int argc, char **argv);
/* cli_eval.c */
int cli_eval_list(struct cli *cli, int argc, char **argv);
int cli_eval_status(struct cli *cli, int argc, char **argv);
/* cli_job_check.c */
int cli_job_eval(struct cli *cli, int argc, char **argv);
int cli_job_inspect(struct cli *cli, int argc, char **argv);
int cli_job_validate(struct cli *cli, int argc, char **argv);
/* cli_job_children.c */
int cli_job_dispatch(struct cli *cli, int argc, char **argv);
int cli_job_periodic(struct cli *cli, int argc, char **argv);
int cli_job_history(struct cli *cli, int argc, char **argv);
int cli_job_plan(struct cli *cli, int argc, char **argv);
int cli_job_revert(struct cli *cli, int argc, char **argv);
int cli_job_run(struct cli *cli, int argc, char **argv);
int cli_job_scale(struct cli *cli, int argc, char **argv);
int cli_job_status(struct cli *cli, int argc, char **argv);
int cli_job_stop(struct cli *cli, int argc, char **argv);
int cli_leaks(struct cli *cli, int argc, char **argv);
int cli_monitor(struct cli *cli, int argc, char **argv);
int cli_node_drain(struct cli *cli, int argc, char **argv);
/* cli_system.c */
int cli_node_eligibility(struct cli *cli, int argc, char **argv);
int cli_system_gc(struct cli *cli, int argc, char **argv);
int cli_node_meta(struct cli *cli, int argc, char **argv);
int cli_node_status(struct cli *cli, int argc, char **argv);
int cli_plugin_status(struct cli *cli, int argc, char **argv);
int cli_status(struct cli *cli, int argc, char **argv);
int cli_volume_create(struct cli *cli, int argc, char **argv);
int cli_volume_delete(struct cli *cli, int argc, char **argv);
int cli_volume_deregister(struct cli *cli, int argc, char **argv);
int cli_volume_register(struct cli *cli, int argc, char **argv);
int cli_volume_snapshot(struct cli *cli, int argc, char **argv);
int cli_volume_status(struct cli *cli, int argc, char **argv);

extern const struct cli_flag cli_agent_flags[], cli_alloc_exec_flags[], cli_alloc_fs_flags[],
    cli_alloc_logs_flags[], cli_alloc_restart_flags[], cli_alloc_signal_flags[],
    cli_alloc_stop_flags[], cli_job_change_flags[], cli_job_run_flags[], cli_job_stop_flags[],
    cli_node_drain_flags[], cli_node_status_flags[], cli_volume_delete_flags[];

extern const struct cli_flag cli_volume_snapshot_flags[], cli_monitor_flags[], cli_action_flags[],
    cli_eval_list_flags[], cli_job_eval_flags[], cli_node_eligibility_flags[],
    cli_node_meta_flags[], cli_volume_deregister_flags[], cli_deployment_resume_flags[],
    cli_deployment_promote_flags[], cli_job_dispatch_flags[];

#endif
