/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_job.c: jobs are completed, validated and compared. Runs in: unit tests. */
#include <errno.h>
#include <string.h>

#include "common/duration.h"
#include "common/id.h"
#include "model/job.h"
#include "model/job_stub.h"
#include "supervisor/server/job/job_diff.h"
#include "supervisor/server/job/job_validate.h"
#include "tests/unit/unit.h"

/* Loads what `nomad job run -output` printed for a job. */
static void
load(struct job *job)
{
	cleanup_json json_t *json = json_load_file(FIXTURES "/model_job.json", 0, NULL);
	struct err e = { 0 };

	job_init(job);
	ck_assert_ptr_nonnull(json);
	ck_assert_msg(
	    model_from_json(&job_type, json_object_get(json, "Job"), job, &e) == 0, "%s", e.msg);
}

static void
parse(struct job *job, const char *text)
{
	struct err e = { 0 };

	job_init(job);
	ck_assert_msg(model_from_text(&job_type, text, strlen(text), job, &e) == 0, "%s", e.msg);
	job_complete(job);
}

START_TEST(a_real_job_is_completed)
{
	cleanup_done(job) struct job job;
	const struct task_group *g;
	const struct task *t;

	load(&job);
	job_complete(&job);
	ck_assert_str_eq(job.region, "global");
	ck_assert_str_eq(job.namespace, "default");
	ck_assert_str_eq(job.node_pool, "default");
	ck_assert_int_eq(job.priority, 50);
	ck_assert_int_eq(job.type, JOB_SERVICE);
	ck_assert_uint_eq(job.datacenters.n, 1);
	g = job_group(&job, "cache");
	ck_assert_int_eq(g->count, 2);
	ck_assert_int_eq(g->restart_policy->attempts, 4);
	ck_assert_int_eq(g->restart_policy->interval, 600 * NS_PER_S);
	ck_assert_int_eq(g->restart_policy->delay, 15 * NS_PER_S);
	ck_assert_int_eq(g->restart_policy->mode, RESTART_FAIL);
	ck_assert_int_eq(g->reschedule_policy->unlimited, OPT_TRUE);
	ck_assert_int_eq(g->reschedule_policy->delay_function, DELAY_EXPONENTIAL);
	ck_assert_int_eq(g->update->max_parallel, 1);
	ck_assert_int_eq(g->migrate->max_parallel, 1);
	ck_assert_int_eq(g->ephemeral_disk->size_mb, 300);
	ck_assert_uint_eq(group_stop_after_ms(g), 90000);
	t = group_task(g, "redis");
	ck_assert_int_eq(t->restart_policy->attempts, 0);
	ck_assert_int_eq(t->restart_policy->interval, 600 * NS_PER_S);
	ck_assert_int_eq(t->restart_policy->delay, 15 * NS_PER_S);
	ck_assert_int_eq(t->resources->cpu, 500);
	ck_assert_int_eq(t->resources->memory_mb, 256);
	ck_assert_int_eq(t->log_config->max_files, 10);
	ck_assert_int_eq(t->kill_timeout, 20 * NS_PER_S);
	ck_assert_int_eq(t->volume_mounts.v[0].propagation_mode, PROPAGATION_PRIVATE);
	ck_assert_str_eq(
	    map_get(volume_request, &g->volumes, "data")->mount_options->mount_flags.v[0],
	    "noatime");
	ck_assert_str_eq(
	    json_string_value(json_object_get(t->config, "command")), "/usr/bin/redis-server");
}
END_TEST

/* Fields that the API's client dereferences must not be null, even for a minimal job. */
START_TEST(nothing_dereferenced_is_null)
{
	static const char *const job_keys[] = { "ID", "Name", "Region", "Namespace", "Type",
		"Priority", "AllAtOnce", "Stop", "NodePool", "Datacenters", "Status",
		"StatusDescription", "Stable", "Version", "SubmitTime", "CreateIndex",
		"ModifyIndex", "JobModifyIndex" };
	static const char *const group_keys[] = { "Name", "Count", "RestartPolicy",
		"ReschedulePolicy", "EphemeralDisk" };
	static const char *const task_keys[] = { "Name", "Driver", "Resources", "RestartPolicy",
		"KillTimeout", "LogConfig", "ShutdownDelay" };
	static const char *const policy_keys[] = { "Attempts", "Interval", "Delay", "DelayFunction",
		"MaxDelay", "Unlimited" };
	static const char *const kinds[] = { "service", "batch", "system", "sysbatch" };
	cleanup_done(job) struct job job;
	cleanup_json json_t *json = NULL;
	char text[200];
	const json_t *group, *task;
	size_t i;

	(void)snprintf(text, sizeof(text),
	    "{\"ID\":\"a\",\"Type\":\"%s\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":"
	    "\"t\"}]}]}",
	    kinds[_i]);
	parse(&job, text);
	json = model_to_json(&job_type, &job, 0);
	group = json_array_get(json_object_get(json, "TaskGroups"), 0);
	task = json_array_get(json_object_get(group, "Tasks"), 0);
	for (i = 0; i < ELEMENTSOF(job_keys); i++)
		ck_assert_msg(!json_is_null(json_object_get(json, job_keys[i])), "%s", job_keys[i]);
	for (i = 0; i < ELEMENTSOF(group_keys); i++)
		ck_assert_msg(
		    !json_is_null(json_object_get(group, group_keys[i])), "%s", group_keys[i]);
	for (i = 0; i < ELEMENTSOF(task_keys); i++)
		ck_assert_msg(
		    !json_is_null(json_object_get(task, task_keys[i])), "%s", task_keys[i]);
	for (i = 0; i < ELEMENTSOF(policy_keys); i++)
		ck_assert_msg(!json_is_null(json_object_get(
				  json_object_get(group, "ReschedulePolicy"), policy_keys[i])),
		    "%s", policy_keys[i]);
	for (i = 0; i < 3; i++)
		ck_assert_msg(!json_is_null(json_object_get(
				  json_object_get(task, "RestartPolicy"), policy_keys[i])),
		    "%s", policy_keys[i]);
}
END_TEST

START_TEST(completing_twice_changes_nothing)
{
	cleanup_done(job) struct job job, again;
	char where[200] = "";

	load(&job);
	job_init(&again);
	job_complete(&job);
	job_copy(&job, &again);
	job_complete(&again);
	ck_assert_msg(
	    !model_difference(&job_type, &job, &again, where, sizeof(where)), "%s", where);
	job_done(&again);
}
END_TEST

START_TEST(services_are_completed)
{
	cleanup_done(job) struct job job;
	const struct service *s;

	parse(&job, "{\"ID\":\"a\",\"TaskGroups\":[{\"Name\":\"g\",\"Services\":[{\"Name\":\"x-${"
		    "JOB}-${BASE}-"
		    "${JOB}\",\"CheckRestart\":{\"Limit\":3,\"Grace\":\"9s\"},\"Checks\":[{},{"
		    "\"Name\":\"n\","
		    "\"CheckRestart\":{\"Limit\":1}},{\"OnUpdate\":\"ignore\",\"CheckRestart\":{"
		    "\"Grace\":0}}]}],"
		    "\"Tasks\":[{\"Name\":\"t\",\"Services\":[{},{\"Name\":\"${TASK}-${NOMAD_DC}\","
		    "\"Provider\":\"nomad\",\"Checks\":[{}]}]}]}]}");
	s = job.task_groups.v[0].services.v;
	ck_assert_str_eq(s->name, "x-a-a-g-group-a");
	ck_assert_str_eq(s->provider, "consul");
	ck_assert_str_eq(s->address_mode, "auto");
	ck_assert_str_eq(s->checks.v[0].name, "service: \"x-a-a-g-group-a\" check");
	ck_assert_str_eq(s->checks.v[0].on_update, "require_healthy");
	ck_assert_int_eq(s->checks.v[0].check_restart->limit, 3);
	ck_assert_int_eq(s->checks.v[0].check_restart->grace, 9 * NS_PER_S);
	ck_assert_str_eq(s->checks.v[1].name, "n");
	ck_assert_int_eq(s->checks.v[1].check_restart->limit, 1);
	ck_assert_int_eq(s->checks.v[1].check_restart->grace, 9 * NS_PER_S);
	ck_assert_str_eq(s->checks.v[2].on_update, "ignore");
	ck_assert_int_eq(s->checks.v[2].check_restart->limit, 3);
	ck_assert_int_eq(s->checks.v[2].check_restart->grace, 0);
	s = job.task_groups.v[0].tasks.v[0].services.v;
	ck_assert_str_eq(s[0].name, "a-g-t");
	ck_assert_str_eq(s[1].name, "t-${NOMAD_DC}");
	ck_assert_ptr_null(s[1].checks.v[0].check_restart);
}
END_TEST

/* The values are those that Nomad's API shows for such a job. */
START_TEST(templates_are_completed)
{
	cleanup_done(job) struct job job;
	const struct task_template *t;

	parse(&job, "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\","
		    "\"Driver\":\"exec\",\"Templates\":[{\"EmbeddedTmpl\":\"x\",\"DestPath\":"
		    "\"local/x\"},{\"SourcePath\":\"local/t\",\"DestPath\":\"local/y\","
		    "\"ChangeMode\":\"signal\",\"Splay\":0,\"Uid\":0,\"LeftDelim\":\"[[\","
		    "\"Wait\":{\"Max\":\"1m\"}},{\"ChangeMode\":\"script\",\"ChangeSignal\":"
		    "\"sigusr1\",\"ChangeScript\":{\"Command\":\"/bin/x\"}}]}]}]}");
	ck_assert_uint_eq(job.task_groups.v[0].tasks.v[0].templates.n, 3);
	t = job.task_groups.v[0].tasks.v[0].templates.v;
	ck_assert_int_eq(t[0].change_mode, TEMPLATE_RESTART);
	ck_assert_ptr_null(t[0].change_signal);
	ck_assert_int_eq(t[0].splay, 5 * NS_PER_S);
	ck_assert_str_eq(t[0].perms, "0644");
	ck_assert_int_lt(t[0].uid, 0);
	ck_assert_int_lt(t[0].gid, 0);
	ck_assert_str_eq(t[0].left_delim, "{{");
	ck_assert_str_eq(t[0].right_delim, "}}");
	ck_assert_ptr_null(t[0].wait);
	ck_assert_int_eq(t[1].change_mode, TEMPLATE_SIGNAL);
	ck_assert_str_eq(t[1].change_signal, "SIGHUP");
	ck_assert_int_eq(t[1].splay, 0);
	ck_assert_int_eq(t[1].uid, 0);
	ck_assert_str_eq(t[1].left_delim, "[[");
	ck_assert_int_eq(t[1].wait->min, MODEL_UNSET);
	ck_assert_int_eq(t[1].wait->max, 60 * NS_PER_S);
	ck_assert_str_eq(t[2].change_signal, "SIGUSR1");
	ck_assert_int_eq(t[2].change_script->timeout, 5 * NS_PER_S);
}
END_TEST

START_TEST(defaults_depend_on_type)
{
	cleanup_done(job) struct job job;
	const struct task_group *g;

	parse(&job, "{\"ID\":\"a\",\"Type\":\"batch\",\"TaskGroups\":[{\"Name\":\"g\"}]}");
	g = job.task_groups.v;
	ck_assert_int_eq(g->restart_policy->attempts, 3);
	ck_assert_int_eq(g->restart_policy->interval, 24 * 3600 * NS_PER_S);
	ck_assert_int_eq(g->reschedule_policy->attempts, 1);
	ck_assert_int_eq(g->reschedule_policy->delay, 5 * NS_PER_S);
	ck_assert_int_eq(g->reschedule_policy->delay_function, DELAY_CONSTANT);
	ck_assert_int_eq(g->reschedule_policy->unlimited, OPT_FALSE);
	ck_assert_ptr_null(g->update);
	ck_assert_ptr_null(g->migrate);
	ck_assert_str_eq(job.datacenters.v[0], "*");
	ck_assert_str_eq(job.name, "a");
}
END_TEST

START_TEST(blocks_merge_downwards)
{
	cleanup_done(job) struct job job;
	const struct task_group *g;

	parse(&job, "{\"ID\":\"a\",\"Update\":{\"MaxParallel\":5,\"Canary\":1},\"Reschedule\":{"
		    "\"Delay\":\"40s\"},"
		    "\"TaskGroups\":[{\"Name\":\"g\",\"Update\":{\"MaxParallel\":2},"
		    "\"ReschedulePolicy\":{\"Attempts\":3,"
		    "\"Interval\":\"1h\"},\"Scaling\":{\"Min\":4},\"Tasks\":[{\"Name\":\"t\","
		    "\"Resources\":{\"Cores\":2}}]}]}");
	g = job.task_groups.v;
	ck_assert_int_eq(g->update->max_parallel, 2);
	ck_assert_int_eq(g->update->canary, 1);
	ck_assert_int_eq(g->reschedule_policy->attempts, 3);
	ck_assert_int_eq(g->reschedule_policy->unlimited, OPT_FALSE);
	ck_assert_int_eq(g->reschedule_policy->delay, 40 * NS_PER_S);
	ck_assert_int_eq(g->count, 4);
	ck_assert_int_eq(g->tasks.v[0].resources->cpu, 0);
	ck_assert_int_eq(g->tasks.v[0].resources->cores, 2);
}
END_TEST

#define TASK(more)   "{\"Name\":\"t\",\"Driver\":\"exec\"" more "}"
#define GROUP(more)  "{\"Name\":\"g\",\"Tasks\":[" TASK("") "]" more "}"
#define JOB(groups)  "{\"ID\":\"j\",\"TaskGroups\":[" groups "]}"
#define WITH(more)   JOB(GROUP("," more))
#define TASKED(more) JOB("{\"Name\":\"g\",\"Tasks\":[" TASK("," more) "]}")
#define LOSS(value)  "\"Meta\":{\"drover_volume_loss\":\"" value "\"}"
#define CSI(more)                                                                                  \
	"\"Volumes\":{\"d\":{\"Type\":\"csi\",\"Source\":\"v\",\"AttachmentMode\":\"file-"         \
	"system\"" more "}}"
#define HOST(access, attachment)                                                                   \
	"\"Volumes\":{\"d\":{\"Type\":\"host\",\"Source\":\"v\",\"AccessMode\":\"" access          \
	"\",\"AttachmentMode\":\"" attachment "\"}}"
#define NAMED(more)    "\"Identities\":[{" more "}]"
#define IDENTITY(name) "group \"g\": task \"t\": identity \"" name "\": "

/* NULL: the job is valid. */
struct validation {
	const char *job, *sentence;
};

static const struct validation general_cases[] = {
	{ JOB(GROUP("")), NULL },
	{ TASKED("\"Templates\":[{\"DestPath\":\"local/x\"}]"),
	    "group \"g\": task \"t\": template \"local/x\": it needs source or data" },
	{ TASKED("\"Templates\":[{\"DestPath\":\"local/"
		 "x\",\"EmbeddedTmpl\":\"a\",\"SourcePath\":\"b\"}]"),
	    "group \"g\": task \"t\": template \"local/x\": source and data exclude each other" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\"}]"),
	    "group \"g\": task \"t\": template \"\": destination is missing" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"../../x\"}]"),
	    "group \"g\": task \"t\": template \"../../x\": destination \"../../x\" leads out of "
	    "the allocation" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"signal\",\"ChangeSignal\":\"sigfoo\"}]"),
	    "group \"g\": task \"t\": template \"x\": change_mode \"signal\" needs a "
	    "change_signal, and \"SIGFOO\" is not one" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"signal\"}]"),
	    NULL },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeScript\":"
		 "{}}]"),
	    NULL },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\"},{\"SourcePath\":"
		 "\"b\",\"DestPath\":\"x\"}]"),
	    "group \"g\": task \"t\": two templates have the destination \"x\"" },
	{ TASKED(
	      "\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Wait\":{\"Min\":5}}]"),
	    NULL },
	{ TASKED(
	      "\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Wait\":{\"Min\":-5}}]"),
	    "group \"g\": task \"t\": template \"x\": wait: min and max must not be negative" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"signal\",\"ChangeSignal\":\"SIGHUP\"}]"),
	    NULL },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"signal\",\"ChangeSignal\":\"SIGHUP\",\"Envvars\":true}]"),
	    "group \"g\": task \"t\": template \"x\": env = true and change_mode \"signal\" "
	    "exclude each other: a running task cannot get other environment variables" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"script\"}]"),
	    "group \"g\": task \"t\": template \"x\": change_mode \"script\" needs a change_script "
	    "block" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"ChangeMode\":"
		 "\"script\",\"ChangeScript\":{\"Timeout\":-1}}]"),
	    "group \"g\": task \"t\": template \"x\": change_script: command is missing; group "
	    "\"g\": task \"t\": template \"x\": change_script: timeout must not be negative" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Perms\":\"0888\"}]"),
	    "group \"g\": task \"t\": template \"x\": perms must be an octal number of up to 0777, "
	    "not \"0888\"" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Perms\":\"4755\"}]"),
	    "group \"g\": task \"t\": template \"x\": perms must be an octal number of up to 0777, "
	    "not \"4755\"" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Splay\":-1,\"Uid\":-"
		 "2}]"),
	    "group \"g\": task \"t\": template \"x\": splay must not be negative; group \"g\": "
	    "task \"t\": template \"x\": uid and gid must be between 0 and "
	    "4294967294, or -1: the task's" },
	{ TASKED("\"Templates\":[{\"EmbeddedTmpl\":\"a\",\"DestPath\":\"x\",\"Wait\":{\"Min\":5,"
		 "\"Max\":4}}]"),
	    "group \"g\": task \"t\": template \"x\": wait: max must not be less than min" },
	{ "{\"TaskGroups\":[" GROUP("") "]}", "a job's id must have 1 to 255 characters, no space, "
					      "and no empty, \".\" or \"..\" part" },
	{ "{\"ID\":\"a/../b\",\"TaskGroups\":[" GROUP("") "]}",
	    "a job's id must have 1 to 255 characters, no space, and no empty, \".\" or \"..\" "
	    "part" },
	{ "{\"ID\":\"..\",\"TaskGroups\":[" GROUP("") "]}",
	    "a job's id must have 1 to 255 characters, no space, and no empty, \".\" or \"..\" "
	    "part" },
	{ "{\"ID\":\"a b\",\"TaskGroups\":[" GROUP("") "]}",
	    "a job's id must have 1 to 255 characters, no space, and no empty, \".\" or \"..\" "
	    "part" },
	{ "{\"ID\":\"a/b..c/...\",\"TaskGroups\":[" GROUP("") "]}", NULL },
	{ "{\"ID\":\"j\"}", "the job has no group" },
	{ JOB("{\"Name\":\"g\"}"), "group \"g\": it has no task" },
	{ WITH(LOSS("signal:SIGHUP")), NULL },
	{ TASKED(LOSS("noop")), NULL },
	{ WITH(LOSS("restarts")), "group \"g\": meta: drover_volume_loss must be restart, noop or "
				  "signal:NAME, not \"restarts\"" },
	{ TASKED(LOSS("signal:NOPE")), "group \"g\": task \"t\": meta: drover_volume_loss must be "
				       "restart, noop or signal:NAME, not \"signal:NOPE\"" },
	{ "{\"ID\":\"j\"," LOSS("") ",\"TaskGroups\":[" GROUP("") "]}",
	    "meta: drover_volume_loss must be restart, noop or signal:NAME, not \"\"" },
	{ JOB(GROUP("") "," GROUP("")), "group \"g\": the job has two groups of this name" },
	{ JOB("{\"Name\":\"g\",\"Tasks\":[" TASK("") "," TASK("") "]}"),
	    "group \"g\": task \"t\": the group has two tasks of this name" },
	{ JOB("{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"../x\",\"Driver\":\"exec\"}]}"),
	    "group \"g\": task \"../x\": a task's name must have 1 to 128 letters, digits, '.', "
	    "'_' and '-' and no leading dot, and must not be \"alloc\"" },
	{ JOB("{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"alloc\",\"Driver\":\"exec\"}]}"),
	    "group \"g\": task \"alloc\": a task's name must have 1 to 128 letters, digits, '.', "
	    "'_' and '-' and no leading dot, and must not be \"alloc\"" },
	{ JOB("{\"Name\":\"g\",\"Tasks\":[{\"Name\":\"t\"}]}"),
	    "group \"g\": task \"t\": driver is missing" },
	{ WITH("\"Count\":-1"), "group \"g\": count may not be below zero" },
	{ WITH("\"Count\":0"), NULL },
	{ WITH("\"StopAfterClientDisconnect\":-5"),
	    "group \"g\": stop_after_client_disconnect may not be below zero" },
	{ WITH("\"StopAfterClientDisconnect\":5,\"Disconnect\":{\"StopOnClientAfter\":6}"),
	    "group \"g\": stop_after_client_disconnect and disconnect.stop_on_client_after differ: "
	    "give one of "
	    "them" },
	{ TASKED("\"Actions\":[{\"Name\":\"x\"}]"),
	    "group \"g\": task \"t\": action \"x\": command is missing" },
	{ TASKED("\"Actions\":[{\"Name\":\"x y\",\"Command\":\"a\"}]"),
	    "group \"g\": task \"t\": action \"x y\": an action's name must have 1 to 128 "
	    "characters and no space" },
	{ TASKED("\"Actions\":[{\"Name\":\"x\",\"Command\":\"a\"},{\"Name\":\"x\",\"Command\":"
		 "\"b\"}]"),
	    "group \"g\": task \"t\": it has two actions with the name \"x\"" },
	{ TASKED("\"RestartPolicy\":{\"Attempts\":3,\"Interval\":\"1s\"}"),
	    "group \"g\": task \"t\": restart: interval must be at least 5s" },
	{ WITH("\"ReschedulePolicy\":{\"Interval\":-9223372036854775807}"),
	    "group \"g\": reschedule: interval, delay and max_delay must not be negative" },
	{ WITH("\"ReschedulePolicy\":{\"MaxDelay\":\"-1s\"}"),
	    "group \"g\": reschedule: interval, delay and max_delay must not be negative" },
	{ WITH("\"ReschedulePolicy\":{\"Unlimited\":true}"), NULL },
	{ TASKED("\"Resources\":{\"CPU\":0}"),
	    "group \"g\": task \"t\": resources: cpu must be at least 1 MHz, not 0" },
	{ TASKED("\"Resources\":{\"MemoryMB\":9}"),
	    "group \"g\": task \"t\": resources: memory must be at least 10 MB, not 9" },
	{ TASKED("\"KillTimeout\":-1"),
	    "group \"g\": task \"t\": kill_timeout and shutdown_delay must not be negative" },
	{ TASKED("\"KillSignal\":\"SIGFOO\""),
	    "group \"g\": task \"t\": kill_signal \"SIGFOO\" is not a signal" },
	{ TASKED("\"KillSignal\":\"SIGUSR1\""), NULL },
	{ TASKED("\"Env\":{\"A=B\":\"c\"}"),
	    "group \"g\": task \"t\": \"A=B\" cannot be the name of an environment variable" },
	{ TASKED(NAMED("\"Name\":\"a_B-1\",\"Env\":true,\"TTL\":1000000000")), NULL },
	{ TASKED(NAMED("\"Name\":\"a b\"")),
	    IDENTITY("a b") "its name must have 1 to 128 letters, digits, '-' and '_'" },
	{ TASKED(NAMED("\"Name\":\"a\"},{\"Name\":\"a\"")),
	    "group \"g\": task \"t\": it has two identities with the name \"a\"" },
	{ TASKED(NAMED("\"Name\":\"a\",\"TTL\":-1")), IDENTITY("a") "ttl must not be negative" },
	{ TASKED("\"Identity\":{\"TTL\":\"1h\"}"),
	    IDENTITY("default") "the default identity cannot have a ttl" },
	{ TASKED(NAMED("\"Name\":\"default\",\"TTL\":\"1h\"")),
	    IDENTITY("default") "the default identity cannot have a ttl" },
	{ TASKED(NAMED("\"Name\":\"a\",\"Audience\":[\"\"]")),
	    IDENTITY("a") "an audience is empty" },
	{ TASKED(NAMED("\"Name\":\"a\",\"ChangeMode\":\"signal\",\"ChangeSignal\":\"SIGX\"")),
	    IDENTITY("a") "change_mode \"signal\" needs a change_signal, and \"SIGX\" is not one" },
	{ TASKED(NAMED("\"Name\":\"a\",\"ChangeMode\":\"noop\",\"ChangeSignal\":\"SIGHUP\"")),
	    IDENTITY("a") "change_signal needs change_mode = \"signal\"" },
	{ TASKED(NAMED("\"Name\":\"a\",\"ChangeMode\":\"signal\",\"ChangeSignal\":\"SIGHUP\"")),
	    NULL },
	{ TASKED(NAMED("\"Name\":\"a\",\"Filepath\":\"local/x\"")),
	    IDENTITY("a") "filepath needs file = true" },
	{ TASKED("\"LogConfig\":{\"MaxFiles\":100,\"MaxFileSizeMB\":100}"),
	    "group \"g\": task \"t\": logs: 100 files of 100 MB do not fit the group's "
	    "ephemeral_disk of 300 MB" },
	{ TASKED("\"VolumeMounts\":[{\"Volume\":\"d\",\"Destination\":\"/d\"}]"),
	    "group \"g\": task \"t\": volume_mount \"d\": the group has no volume of this name" },
	{ TASKED("\"CSIPluginConfig\":{\"ID\":\"a/b\",\"Type\":\"node\"}"),
	    "group \"g\": task \"t\": csi_plugin \"a/b\": id must have 1 to 128 letters, digits, "
	    "'.', '_' and '-' and no leading dot" },
	{ TASKED(
	      "\"CSIPluginConfig\":{\"ID\":\"p\",\"Type\":\"node\",\"MountDir\":\"/csi/../..\"}"),
	    "group \"g\": task \"t\": csi_plugin \"p\": mount_dir and stage_publish_base_dir must "
	    "not contain \"..\"" },
	{ WITH(CSI(",\"AccessMode\":\"single-node-writer\"")), NULL },
	{ WITH(CSI("")), "group \"g\": volume \"d\": access_mode is missing" },
	{ WITH("\"Count\":2," CSI(",\"AccessMode\":\"single-node-writer\"")),
	    "group \"g\": volume \"d\": access_mode single-node-writer serves one alloc, but the "
	    "group's count is 2: "
	    "use per_alloc" },
	{ WITH("\"Count\":2," CSI(",\"AccessMode\":\"single-node-writer\",\"PerAlloc\":true")),
	    NULL },
	{ WITH(CSI(",\"AccessMode\":\"multi-node-reader-only\"")),
	    "group \"g\": volume \"d\": access_mode multi-node-reader-only needs read_only = "
	    "true" },
	{ WITH("\"Volumes\":{\"d\":{\"Type\":\"csi\",\"Source\":\"../"
	       "v\",\"AttachmentMode\":\"file-system\","
	       "\"AccessMode\":\"single-node-writer\"}}"),
	    "group \"g\": volume \"d\": source \"../v\" cannot be the id of a volume" },
	{ WITH(CSI(",\"AccessMode\":\"single-node-multi-writer\"")),
	    "group \"g\": volume \"d\": access_mode single-node-multi-writer is only for host "
	    "volumes" },
	{ WITH(HOST("single-node-writer", "file-system")), NULL },
	{ WITH(HOST("single-node-single-writer", "")), NULL },
	{ WITH(HOST("single-node-multi-writer", "file-system")), NULL },
	{ WITH(HOST("single-node-reader-only", "")),
	    "group \"g\": volume \"d\": access_mode single-node-reader-only needs read_only = "
	    "true" },
	{ WITH(HOST("multi-node-multi-writer", "")),
	    "group \"g\": volume \"d\": access_mode multi-node-multi-writer is only for csi "
	    "volumes" },
	{ WITH(HOST("", "block-device")),
	    "group \"g\": volume \"d\": a host volume is a directory: attachment_mode must be "
	    "\"file-system\"" },
	{ WITH("\"Volumes\":{\"d\":{\"Type\":\"host\",\"Source\":\"v\",\"MountOptions\":{}}}"),
	    "group \"g\": volume \"d\": host volumes cannot have mount_options" },
	{ TASKED("\"Resources\":{\"MemoryMB\":20,\"MemoryMaxMB\":-1}"), NULL },
	{ TASKED("\"Resources\":{\"MemoryMB\":20,\"MemoryMaxMB\":-2}"),
	    "group \"g\": task \"t\": resources: memory_max must not be negative, except -1: no "
	    "limit" },
};

/* Problems that only the embedded server reports. */
static const struct validation local_cases[] = {
	{ TASKED("\"Templates\":[{\"DestPath\":\"x\",\"EmbeddedTmpl\":\"y\"}]"), NULL },
	{ TASKED("\"Templates\":[],\"Vault\":null,\"Consul\":{\"Namespace\":\"\"}"), NULL },
	{ TASKED("\"Resources\":{\"Devices\":[{\"Name\":\"gpu\"}]}"),
	    "group \"g\": task \"t\": drover does not support device: remove it" },
	{ WITH("\"Services\":[{\"Name\":\"x\"}]"), NULL },
	{ WITH("\"Services\":[{\"Name\":\"x\",\"Provider\":\"nomad\"}]"), NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"bridge\"}]"), NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"none\"}]"), NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"cni/lan\"}]"), NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"cni/lan\",\"CNI\":{\"Args\":{\"a\":\"b ${c}\"}}}]"),
	    NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"cni/lan\",\"CNI\":{\"Args\":{\"a\":\"b;IP=c\"}}}]"),
	    "group \"g\": network: cni: argument \"a\" cannot be passed to CNI plugins: it must "
	    "have a name, and neither name nor value may have ';', '=' or control characters" },
	{ WITH("\"Networks\":[{\"Mode\":\"cni/lan\",\"CNI\":{\"Args\":{\"a=b\":\"c\"}}}]"),
	    "group \"g\": network: cni: argument \"a=b\" cannot be passed to CNI plugins: it must "
	    "have a name, and neither name nor value may have ';', '=' or control characters" },
	{ WITH("\"Networks\":[{\"Mode\":\"cni/../x\"}]"),
	    "group \"g\": network mode \"cni/../x\" is unknown: use \"host\", \"none\", "
	    "\"bridge\" or \"cni/NAME\"" },
	{ WITH("\"Networks\":[{\"Mode\":\"none\",\"DynamicPorts\":[{\"Label\":\"a\"}]}]"),
	    "group \"g\": a network of mode \"none\" has no ports: remove them" },
	{ WITH("\"Networks\":[{\"Mode\":\"bridge\"},{\"Mode\":\"host\"}]"),
	    "group \"g\": a group whose network is not the host's can have no other" },
	{ WITH("\"Networks\":[{\"Mode\":\"bridge\",\"Hostname\":\"x\",\"DNS\":{\"Servers\":[\"192."
	       "0.2.1\"]}}]"),
	    NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"none\",\"Hostname\":\"x\"}]"),
	    "group \"g\": a network with a hostname must have mode \"bridge\" or \"cni/NAME\"" },
	{ WITH("\"Networks\":[{\"Mode\":\"host\",\"DynamicPorts\":[{\"Label\":\"http\"}]}]"),
	    NULL },
	{ WITH("\"Networks\":[{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":80},{\"Label\":\"b\","
	       "\"Value\":80}]}]"),
	    "group \"g\": network: ports \"a\" and \"b\" are the same" },
	{ WITH("\"Networks\":[{\"ReservedPorts\":[{\"Label\":\"a\",\"Value\":80},{\"Label\":\"b\","
	       "\"Value\":80,\"HostNetwork\":\"lan\"}]}]"),
	    NULL },
	{ WITH("\"Networks\":[{\"Mode\":\"host\"}],\"Scaling\":{\"Min\":1}"), NULL },
	{ TASKED("\"Lifecycle\":{\"Hook\":\"poststart\"}},{\"Name\":\"main\",\"Driver\":\"exec\""),
	    NULL },
	{ TASKED("\"ShutdownDelay\":1000000000"), NULL },
	{ TASKED("\"Identity\":{\"File\":true}"), NULL },
	{ TASKED(NAMED("\"Name\":\"a\",\"Env\":true")), NULL },
	{ TASKED("\"Identity\":{\"Name\":\"default\",\"Audience\":[\"nomadproject.io\"]}"), NULL },
	{ TASKED("\"ShutdownDelay\":0,\"Kind\":\"\",\"Actions\":[]"), NULL },
	{ TASKED("\"Actions\":[{\"Name\":\"x\",\"Command\":\"a\",\"Args\":[\"b\"]}]"), NULL },
	{ TASKED("\"Resources\":{\"SecretsMB\":5}"), NULL },
	{ WITH("\"ShutdownDelay\":1000000000"), NULL },
	{ WITH("\"EphemeralDisk\":{\"Sticky\":true,\"Migrate\":true}"), NULL },
	{ WITH("\"Update\":{\"Canary\":1,\"AutoRevert\":true,\"AutoPromote\":true}"), NULL },
	{ WITH("\"Update\":{\"AutoPromote\":true}"),
	    "group \"g\": update: auto_promote needs a canary count above zero" },
	{ WITH("\"Update\":{\"MaxParallel\":0,\"HealthCheck\":\"x\"}"), NULL },
	{ WITH("\"Update\":{\"HealthCheck\":\"x\"}"),
	    "group \"g\": update: health_check must be checks, task_states or manual, not \"x\"" },
	{ WITH("\"Update\":{\"MinHealthyTime\":300000000000}"),
	    "group \"g\": update: min_healthy_time must be less than healthy_deadline" },
	{ WITH("\"Update\":{\"ProgressDeadline\":60000000000}"),
	    "group \"g\": update: healthy_deadline must be less than progress_deadline" },
	{ WITH("\"Update\":{\"MaxParallel\":-1}"),
	    "group \"g\": update: max_parallel and canary may not be below zero" },
	{ WITH("\"Update\":{\"MaxParallel\":2,\"AutoRevert\":false}"), NULL },
	{ WITH("\"Count\":10000"), NULL },
	{ WITH("\"Count\":10001"), "the counts of all groups together may not be above 10000" },
	{ WITH("\"Count\":9223372036854775807"),
	    "the counts of all groups together may not be above 10000" },
	{ "{\"ID\":\"j\",\"Type\":\"batch\",\"TaskGroups\":[" GROUP("") "]}", NULL },
};

static void
check_validation(const struct validation *v, const struct problems *p)
{
	struct err e = { 0 };

	ck_assert_int_eq(problems_err(p, &e), v->sentence ? -EINVAL : 0);
	ck_assert_str_eq(e.msg, v->sentence ? v->sentence : "");
}

START_TEST(validation_says_what_and_where)
{
	cleanup_done(job) struct job job;
	struct problems p = { 0 };

	parse(&job, general_cases[_i].job);
	job_validate(&job, &p);
	check_validation(&general_cases[_i], &p);
	problems_done(&p);
}
END_TEST

START_TEST(the_local_source_says_what_it_lacks)
{
	cleanup_done(job) struct job job;
	struct problems general = { 0 }, local = { 0 };

	parse(&job, local_cases[_i].job);
	job_validate(&job, &general);
	ck_assert_uint_eq(general.list.n, 0);
	job_validate_local(&job, &local);
	check_validation(&local_cases[_i], &local);
	problems_done(&local);
}
END_TEST

START_TEST(several_problems_make_one_error)
{
	cleanup_done(job) struct job job;
	struct problems p = { 0 };
	struct err e = { 0 };

	parse(&job, WITH("\"Count\":-1,\"ShutdownDelay\":-1"));
	job_validate(&job, &p);
	ck_assert_int_eq(problems_err(&p, &e), -EINVAL);
	ck_assert_str_eq(e.msg, "group \"g\": count may not be below zero; group \"g\": "
				"shutdown_delay may not be below zero");
	problems_done(&p);
}
END_TEST

/* Zero means not set, in both spellings. */
START_TEST(lease_of_zero_is_none)
{
	static const struct {
		const char *group;
		uint64_t ms;
	} leases[] = { { "\"Count\":1", 0 }, { "\"StopAfterClientDisconnect\":0", 0 },
		{ "\"StopAfterClientDisconnect\":\"5s\"", 5000 },
		{ "\"Disconnect\":{\"StopOnClientAfter\":\"7s\"}", 7000 },
		{ "\"StopAfterClientDisconnect\":\"5s\",\"Disconnect\":{\"StopOnClientAfter\":0}",
		    5000 },
		{ "\"StopAfterClientDisconnect\":1", 1 } };
	cleanup_done(job) struct job job;
	char text[300];

	(void)snprintf(text, sizeof(text), "{\"ID\":\"j\",\"TaskGroups\":[{\"Name\":\"g\",%s}]}",
	    leases[_i].group);
	parse(&job, text);
	ck_assert_uint_eq(group_stop_after_ms(job.task_groups.v), leases[_i].ms);
}
END_TEST

/* Which changes of a registered job replace an alloc, and which leave it running. */
static const struct {
	const char *old, *new, *why; /* NULL: it stays */
} changes[] = {
	{ JOB(GROUP("")), JOB(GROUP("")), NULL },
	{ JOB(GROUP("")), WITH("\"Count\":5"), NULL },
	{ JOB(GROUP("")), WITH("\"RestartPolicy\":{\"Attempts\":1}"), NULL },
	{ JOB(GROUP("")), WITH("\"StopAfterClientDisconnect\":5"), NULL },
	{ JOB(GROUP("")), TASKED("\"KillTimeout\":9"), NULL },
	{ JOB(GROUP("")), "{\"ID\":\"j\",\"Priority\":80,\"TaskGroups\":[" GROUP("") "]}", NULL },
	{ JOB(GROUP("")), TASKED("\"Env\":{\"A\":\"b\"}"), "Tasks[0].Env" },
	{ TASKED("\"Env\":{\"A\":\"b\",\"C\":\"d\"}"), TASKED("\"Env\":{\"C\":\"d\",\"A\":\"b\"}"),
	    NULL },
	{ JOB(GROUP("")), TASKED("\"Config\":{\"command\":\"x\"}"), "Tasks[0].Config" },
	{ JOB(GROUP("")), TASKED("\"Resources\":{\"CPU\":200}"), "Tasks[0].Resources.CPU" },
	{ JOB(GROUP("")), TASKED("\"User\":\"root\""), "Tasks[0].User" },
	{ JOB(GROUP("")), WITH(CSI("")), "Volumes" },
	{ JOB(GROUP("")), "{\"ID\":\"j\",\"Meta\":{\"a\":\"b\"},\"TaskGroups\":[" GROUP("") "]}",
	    "Meta" },
};

START_TEST(only_some_changes_replace_allocs)
{
	cleanup_done(job) struct job a, b;
	char why[200] = "";
	bool replaced;

	parse(&a, changes[_i].old);
	parse(&b, changes[_i].new);
	replaced =
	    group_needs_replacement(&a, a.task_groups.v, &b, b.task_groups.v, why, sizeof(why));
	ck_assert_int_eq(replaced, changes[_i].why != NULL);
	if (replaced)
		ck_assert_str_eq(why, changes[_i].why);
	job_done(&b);
}
END_TEST

START_TEST(a_stub_tells_of_its_job)
{
	cleanup_done(job) struct job job;
	cleanup_done(job_stub) struct job_stub stub;
	cleanup_json json_t *json = NULL;

	load(&job);
	job_stub_init(&stub);
	job_complete(&job);
	job.version = 3;
	job_stub_fill(&stub, &job);
	map_put(group_summary, &stub.job_summary.summary, "cache")->running = 2;
	json = model_to_json(&job_stub_type, &stub, 0);
	ck_assert_str_eq(json_string_value(json_object_get(json, "Type")), "service");
	ck_assert_int_eq(json_integer_value(json_object_get(json, "Version")), 3);
	ck_assert(json_is_false(json_object_get(json, "Periodic")));
	ck_assert_int_eq(
	    json_integer_value(json_object_get(
		json_object_get(
		    json_object_get(json_object_get(json, "JobSummary"), "Summary"), "cache"),
		"Running")),
	    2);
}
END_TEST

/* NULL: rejected. */
static const struct identity_path {
	const char *name, *filepath, *file;
} identity_paths[] = {
	{ "a", NULL, "secrets/nomad_a.jwt" },
	{ "default", NULL, "secrets/nomad_token" },
	{ "default", "local/x", "local/x" },
	{ "a", "secrets/x.jwt", "secrets/x.jwt" },
	{ "a", "/secrets/./x", "secrets/x" },
	{ "a", ".//local///x", "local/x" },
	{ "a", "x", NULL },
	{ "a", "/x", NULL },
	{ "a", "local", NULL },
	{ "a", "local/", NULL },
	{ "a", "local/.", NULL },
	{ "a", "local/.x", NULL },
	{ "a", "local/a b", NULL },
	{ "a", "local/a/b", NULL },
	{ "a", "alloc/x", NULL },
	{ "a", "tmp/x", NULL },
	{ "a", "../local/x", NULL },
	{ "a", "local/..", NULL },
	{ "a", "local/../local/x", NULL },
	{ "a", "secrets/../../x", NULL },
};

START_TEST(a_token_is_a_file_of_its_task)
{
	const struct identity_path *p = &identity_paths[_i];
	const struct workload_identity w = { .name = (char *)(uintptr_t)p->name,
		.filepath = (char *)(uintptr_t)p->filepath };
	char file[IDENTITY_FILE_SIZE] = "";
	struct err e = { 0 };

	ck_assert_int_eq(identity_file(&w, file, &e), p->file ? 0 : -EINVAL);
	ck_assert_str_eq(file, p->file ? p->file : "");
	ck_assert_int_eq(e.msg[0] == '\0', p->file != NULL);
}
END_TEST

/* The longest names that fit, and one character more. */
START_TEST(names_of_tokens_fit_or_are_refused)
{
	const size_t max = NAME_BYTES_MAX - strlen("nomad_.jwt");
	char name[NAME_BYTES_MAX + 2], file[IDENTITY_FILE_SIZE], path[IDENTITY_FILE_SIZE + 1];
	struct workload_identity w = { .name = name };
	struct err e = { 0 };

	memset(name, 'a', sizeof name);
	name[max] = '\0';
	ck_assert_int_eq(identity_file(&w, file, &e), 0);
	ck_assert_uint_eq(strlen(file), strlen("secrets/") + NAME_BYTES_MAX);
	name[max] = 'a';
	name[max + 1] = '\0';
	ck_assert_int_eq(identity_file(&w, file, &e), -EINVAL);
	memset(path, 'x', sizeof path);
	memcpy(path, "local/", 6);
	w.filepath = path;
	path[6 + NAME_BYTES_MAX] = '\0';
	ck_assert_int_eq(identity_file(&w, file, &e), 0);
	ck_assert_str_eq(file, path);
	path[6 + NAME_BYTES_MAX] = 'x';
	path[6 + NAME_BYTES_MAX + 1] = '\0';
	ck_assert_int_eq(identity_file(&w, file, &e), -EINVAL);
}
END_TEST

#define LIMITS(list)                                                                               \
	"{\"ID\":\"j\",\"Name\":\"j\",\"Constraints\":[" list "],\"TaskGroups\":[{\"Name\":\"g\"}" \
	"]}"
#define LIMIT(of, to) "{\"LTarget\":\"" of "\",\"RTarget\":\"" to "\",\"Operand\":\"!=\"}"

START_TEST(a_diff_tells_each_element_of_a_list)
{
	cleanup_done(job) struct job one, two;
	cleanup_json json_t *diff = NULL, *back = NULL;
	const json_t *objects;

	parse(&one, LIMITS(LIMIT("${attr.a}", "1") "," LIMIT("${attr.b}", "1")));
	parse(&two, LIMITS(LIMIT("${attr.b}", "1") "," LIMIT("${attr.a}", "1") "," LIMIT(
			"${attr.a}", "2")));
	diff = job_diff(&one, &two);
	objects = json_object_get(diff, "Objects");
	ck_assert_str_eq(json_string_value(json_object_get(diff, "Type")), "Edited");
	ck_assert_uint_eq(json_array_size(objects), 1);
	ck_assert_str_eq(
	    json_string_value(json_object_get(json_array_get(objects, 0), "Type")), "Added");
	back = job_diff(&two, &one);
	objects = json_object_get(back, "Objects");
	ck_assert_uint_eq(json_array_size(objects), 1);
	ck_assert_str_eq(
	    json_string_value(json_object_get(json_array_get(objects, 0), "Type")), "Deleted");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_real_job_is_completed);
	tcase_add_loop_test(tc, nothing_dereferenced_is_null, 0, 4);
	tcase_add_test(tc, completing_twice_changes_nothing);
	tcase_add_test(tc, services_are_completed);
	tcase_add_test(tc, templates_are_completed);
	tcase_add_test(tc, defaults_depend_on_type);
	tcase_add_test(tc, blocks_merge_downwards);
	tcase_add_loop_test(tc, validation_says_what_and_where, 0, ELEMENTSOF(general_cases));
	tcase_add_loop_test(tc, the_local_source_says_what_it_lacks, 0, ELEMENTSOF(local_cases));
	tcase_add_test(tc, several_problems_make_one_error);
	tcase_add_loop_test(tc, a_token_is_a_file_of_its_task, 0, ELEMENTSOF(identity_paths));
	tcase_add_test(tc, names_of_tokens_fit_or_are_refused);
	tcase_add_loop_test(tc, lease_of_zero_is_none, 0, 6);
	tcase_add_loop_test(tc, only_some_changes_replace_allocs, 0, ELEMENTSOF(changes));
	tcase_add_test(tc, a_stub_tells_of_its_job);
	tcase_add_test(tc, a_diff_tells_each_element_of_a_list);
}

int
main(void)
{
	return unit_run("model_job", add);
}
