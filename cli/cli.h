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

/* What a verb returns and drover exits with. */
enum cli_exit {
	CLI_OK = 0,
	CLI_PLAN_FAILED = 255, /* of job plan, where 1 is an answer */
	CLI_FAILED = 1,        /* anything wrong, wrong words on the command line included */
	CLI_UNPLACED = 2,      /* the evaluation failed or could not place everything */
};

#define CLI_TIMEOUT_MS 60000 /* for one request, where -timeout is not given */

struct cli {
	const char *socket_path; /* of the control socket */
	const char *address;     /* the same as the operator wrote it, for sentences */
	bool json;               /* print the API's answer */
	bool verbose;            /* whole ids, exact times */
	uint64_t timeout_ms;     /* for the agent to answer one request */
	int id_len;              /* how much of a UUID is shown, for "%.*s" */
	int status;              /* HTTP status of the last answer, 0 when there was none */
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
	const char *arg; /* what stands for the value in the help */
	const char *help;
};

#define CLI_COMMAND INT_MAX /* behind the first word is a command, which has flags of its own */

struct cli_verb {
	const char *noun, *verb; /* verb is NULL for a command of one word */
	int (*run)(struct cli *cli, int argc, char **argv);
	const struct cli_flag *flags; /* ended by a NULL name; NULL: none of its own */
	int min_args, max_args;       /* -1: the words go to run() as they are; or CLI_COMMAND */
	const char *usage;            /* what follows the verb */
	const char *help;             /* one line */
};

/*
 * Takes the flags out of argv, wherever they stand before "--", and leaves the other words in
 * argv[0..). -name and --name are the same, values follow after '=' or as the next word. Returns
 * the number of words left, or -EINVAL with a sentence.
 */
int cli_flags_parse(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e);
/* The same up to the first word: that and all behind it are words. */
int cli_flags_parse_command(
    const struct cli_flag *const *tables, size_t n, int argc, char **argv, struct err *e);

/* A number of 0 or more. -EINVAL with a sentence that names `what`: a flag, or how it is used. */
int cli_number(const char *what, const char *word, int64_t *ret, struct err *e);

/* Prints what went wrong, one sentence on stderr, and returns CLI_FAILED. */
int cli_fail(struct cli *cli, const struct err *e);
/*
 * For what cannot be undone. A name that was shortened (wanted is only a prefix of found) needs
 * yes, or a person at the terminal who agrees. Returns 0, or -EINVAL with a sentence.
 */
int cli_confirm_prefix(
    const char *kind, const char *wanted, const char *found, bool yes, struct err *e);
/* Asks on the terminal. 1 yes, 0 no, -ENOTTY when nobody is there to ask. */
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
