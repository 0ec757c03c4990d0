/* SPDX-License-Identifier: Apache-2.0 */
/* cli_verbs.h: the functions of the verbs in cli_main.c's table, and their flags. Runs in: drover.
 */
#ifndef DROVER_CLI_CLI_VERBS_H
#define DROVER_CLI_CLI_VERBS_H

#include "cli/cli.h"

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
int cli_fmt(struct cli *cli, int argc, char **argv);
int cli_job_init(struct cli *cli, int argc, char **argv);
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
    cli_alloc_stop_flags[], cli_fmt_flags[], cli_job_change_flags[], cli_job_file_flags[], cli_job_init_flags[], cli_job_run_flags[], cli_job_stop_flags[],
    cli_node_drain_flags[], cli_node_status_flags[], cli_volume_delete_flags[];

extern const struct cli_flag cli_volume_snapshot_flags[], cli_monitor_flags[], cli_action_flags[],
    cli_eval_list_flags[], cli_job_eval_flags[], cli_node_eligibility_flags[],
    cli_node_meta_flags[], cli_volume_deregister_flags[], cli_deployment_resume_flags[],
    cli_deployment_promote_flags[], cli_job_dispatch_flags[];

#endif
