// SPDX-License-Identifier: Apache-2.0
/* cli_job_restart.c: drover job restart: chooses the allocations and restarts them in batches. Runs
 * in: cli. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_restart.h"
#include "cli/cli_verbs.h"
#include "cli/cli_watch.h"
#include "common/duration.h"
#include "common/mem.h"

static struct {
	struct cli_restart how;
	struct strings groups;
	const char *batch_size, *batch_wait, *on_error;
	bool yes;
} options = { .batch_size = "1", .batch_wait = "0s" };

const struct cli_flag cli_job_restart_flags[] = {
	{ "all-tasks", CLI_FLAG_BOOL, &options.how.all_tasks, NULL,
	    "restart all tasks, also ended ones, in lifecycle order" },
	{ "batch-size", CLI_FLAG_STRING, &options.batch_size, "N|N%",
	    "how many allocations are restarted at once (1)" },
	{ "batch-wait", CLI_FLAG_STRING, &options.batch_wait, "TIME|ask",
	    "time between batches (0s), or ask before each" },
	{ "group", CLI_FLAG_STRINGS, &options.groups, "GROUP",
	    "only allocations of this group; repeat for each" },
	{ "no-shutdown-delay", CLI_FLAG_BOOL, &options.how.no_shutdown_delay, NULL,
	    "with -reschedule: do not wait for shutdown_delay" },
	{ "on-error", CLI_FLAG_STRING, &options.on_error, "ask|fail",
	    "when a batch fails: ask, the default on a terminal, or end" },
	{ "reschedule", CLI_FLAG_BOOL, &options.how.reschedule, NULL,
	    "stop the allocations and wait for their replacements" },
	{ "task", CLI_FLAG_STRINGS, &options.how.tasks, "TASK",
	    "restart only this task; repeat for each" },
	{ "yes", CLI_FLAG_BOOL, &options.yes, NULL,
	    "do not ask; continue after a batch that failed" },
	{ 0 },
};

/* A restart of a job. */
struct plan {
	struct cli *cli;
	const char *job_id;
	json_t **allocs; /* that are restarted */
	size_t n, batch;
	int64_t wait_ns;
	bool ask;   /* before each batch but the first */
	bool fails; /* ends after a batch that failed */
	size_t failed;
};

static bool
is_interactive(void)
{
	return isatty(STDIN_FILENO) && isatty(STDOUT_FILENO);
}

static int
read_batch_size(struct plan *p, size_t n, struct err *e)
{
	char *end;
	unsigned long size = strtoul(options.batch_size, &end, 10);
	bool percent = strcmp(end, "%") == 0;

	if ((*end && !percent) || size < 1 || size > INT_MAX || *options.batch_size == '-')
		return err_say(e, -EINVAL,
		    "-batch-size must be a number of 1 or more, or a percentage like 20%%, not "
		    "\"%s\"",
		    options.batch_size);
	p->batch = percent ? (n * size + 99) / 100 : size;
	return 0;
}

/* Reads the flags; -batch-size is read when the number of allocations is known. */
static int
read_options(struct plan *p, struct err *e)
{
	const char *on_error = options.on_error ?: is_interactive() ? "ask" : "fail";
	const struct cli_restart *how = &options.how;

	p->fails = strcmp(on_error, "fail") == 0 && !(options.yes && !options.on_error);
	p->ask = strcmp(options.batch_wait, "ask") == 0;
	if (how->all_tasks && how->tasks.n)
		return err_say(e, -EINVAL, "-all-tasks and -task exclude each other");
	if (how->reschedule && how->tasks.n)
		return err_say(e, -EINVAL, "-reschedule and -task exclude each other");
	if (strcmp(on_error, "fail") != 0 && strcmp(on_error, "ask") != 0)
		return err_say(e, -EINVAL, "-on-error must be ask or fail, not \"%s\"", on_error);
	if ((p->ask || strcmp(on_error, "ask") == 0) && !is_interactive() && !options.yes)
		return err_say(e, -EINVAL, "-%s ask needs a terminal, or -yes",
		    p->ask ? "batch-wait" : "on-error");
	if (!p->ask && (duration_parse(options.batch_wait, &p->wait_ns, e) < 0 || p->wait_ns < 0))
		return err_say(e, -EINVAL,
		    "-batch-wait must be a time like 30s or 1h5m, or ask, not \"%s\"",
		    options.batch_wait);
	p->ask &= !options.yes;
	return 0;
}

/* Returns NULL if the allocation is to be restarted, else why not. */
static const char *
why_skipped(const json_t *alloc)
{
	const json_t *states = cli_json_get(alloc, "TaskStates");
	const struct strings *tasks = &options.how.tasks;
	bool has_task = tasks->n == 0;

	if (*cli_json_str(alloc, "NextAllocation"))
		return "it is replaced";
	if (strcmp(cli_json_str(alloc, "DesiredStatus"), "run") != 0)
		return "it is to be stopped";
	if (cli_alloc_has_ended(alloc) && !(options.how.reschedule && cli_alloc_has_failed(alloc)))
		return "it has ended";
	if (options.groups.n && !strings_has(&options.groups, cli_json_str(alloc, "TaskGroup")))
		return "it is of another group";
	for (size_t i = 0; i < tasks->n; i++)
		has_task |= json_object_get(states, tasks->v[i]) != NULL;
	return has_task ? NULL : "it has none of these tasks";
}

static void
choose_allocs(struct plan *p, const json_t *list)
{
	json_t *alloc;
	size_t i;

	p->allocs = mem_zeroed(json_array_size(list), sizeof *p->allocs);
	json_array_foreach (list, i, alloc) {
		const char *why = why_skipped(alloc);

		if (!why)
			p->allocs[p->n++] = alloc;
		else if (p->cli->verbose)
			cli_say(p->cli, "    Allocation \"%s\" is skipped: %s",
			    cli_json_str(alloc, "ID"), why);
	}
}

/* A deployment would replace allocations meanwhile. */
static int
check_deployments(struct plan *p, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s/deployments?all=true", p->job_id);
	cleanup_json json_t *list = NULL;
	const json_t *d;
	size_t i;
	int r = cli_api_get(p->cli, target, &list, e);

	json_array_foreach (list, i, d) {
		const char *status = cli_json_str(d, "Status");

		if (strcmp(status, "failed") != 0 && strcmp(status, "successful") != 0 &&
		    strcmp(status, "cancelled") != 0)
			return err_say(e, -EBUSY,
			    "deployment \"%.*s\" of the job is %s: wait for its end, or end it "
			    "with drover deployment fail",
			    p->cli->id_len, cli_json_str(d, "ID"), status);
	}
	return r;
}

/* Asks whether to continue; the answer may be a time to wait between the batches from now on.
 * Returns false to end. */
static bool
may_continue(struct plan *p, bool failed)
{
	const char *question = failed ? "Continue after this failure?" : "Restart the next batch?";
	const char *choices = p->ask ? "[y/N/TIME]" : "[y/N]";

	for (;;) {
		cleanup_free char *answer = NULL;

		if (cli_ask_text(question, choices, &answer) < 0 || strcasecmp(answer, "n") == 0 ||
		    strcasecmp(answer, "no") == 0 || *answer == '\0')
			return false;
		if (strcasecmp(answer, "y") == 0 || strcasecmp(answer, "yes") == 0)
			return true;
		if (p->ask && duration_parse(answer, &p->wait_ns, NULL) == 0 && p->wait_ns >= 0) {
			p->ask = false;
			return true;
		}
		cli_say(p->cli, "\"%s\" is no answer", answer);
	}
}

/* Decides between two batches whether the next is restarted, and waits. */
static bool
continues(struct plan *p, const struct cli_restart_result *last)
{
	char span[CLI_TIME_SIZE];

	if (last->failed && (p->fails || (options.yes && last->hopeless))) {
		cli_say(p->cli, "==> The restart ends after this failure");
		return false;
	}
	if ((p->ask || (last->failed && !options.yes)) && !may_continue(p, last->failed > 0)) {
		cli_say(p->cli, "==> The restart is cancelled");
		return false;
	}
	if (p->wait_ns > 0) {
		cli_say(p->cli, "==> Waiting %s before the next batch", cli_span(p->wait_ns, span));
		cli_sleep_ms((unsigned)(p->wait_ns / NS_PER_MS));
	}
	return true;
}

static int
run_batches(struct plan *p, struct err *e)
{
	size_t n_batches = (p->n + p->batch - 1) / p->batch;
	struct cli_restart_result result;

	cli_say(p->cli, "==> Restarting %zu allocation(s) of job \"%s\"", p->n, p->job_id);
	for (size_t i = 0; i < p->n; i += p->batch) {
		size_t n = p->n - i < p->batch ? p->n - i : p->batch;
		int r = check_deployments(p, e);

		if (r < 0)
			return r;
		if (p->batch > 1)
			cli_say(p->cli, "==> Batch %zu of %zu: %zu allocation(s)", i / p->batch + 1,
			    n_batches, n);
		result = cli_restart_batch(&options.how, p->allocs + i, n);
		p->failed += result.failed;
		if (i + n < p->n && !continues(p, &result))
			return p->failed ? CLI_FAILED : CLI_OK;
	}
	cli_say(p->cli, "==> Job \"%s\": %zu of %zu allocation(s) restarted", p->job_id,
	    p->n - p->failed, p->n);
	return p->failed ? CLI_FAILED : CLI_OK;
}

static int
restart_job(struct cli *cli, const char *id, struct err *e)
{
	cleanup_free char *target = cli_target("/v1/job/%s", id),
			  *allocs_target = cli_target("/v1/job/%s/allocations?all=true", id);
	cleanup_json json_t *job = NULL, *list = NULL;
	struct plan p = { .cli = cli, .job_id = id };
	int r = read_options(&p, e);

	if (r == 0)
		r = cli_api_get(cli, target, &job, e);
	if (r == 0 && options.how.reschedule && strcmp(cli_json_str(job, "Type"), "sysbatch") == 0)
		r = err_say(e, -EINVAL, "allocations of a sysbatch job are not replaced");
	if (r == 0)
		r = cli_api_get(cli, allocs_target, &list, e);
	if (r < 0)
		return r;
	options.how.cli = cli;
	options.how.job = job;
	choose_allocs(&p, list);
	r = read_batch_size(&p, p.n, e);
	if (r == 0 && p.n == 0)
		cli_say(cli, "No allocations to restart");
	else if (r == 0)
		r = run_batches(&p, e);
	free(p.allocs);
	return r;
}

int
cli_job_restart(struct cli *cli, int argc, char **argv)
{
	(void)argc;
	return cli_with_id(cli, &cli_kind_job, argv[0], restart_job);
}
