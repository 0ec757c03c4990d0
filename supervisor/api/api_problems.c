// SPDX-License-Identifier: Apache-2.0
/*
 * api_problems.c: /v1/agent/problems, what is wrong on this node: helpers that died, servers, the
 * disk, the clock, checks. Allocations, deployments, volumes and plugins have paths of their own.
 * Runs in: supervisor.
 */
#include <string.h>
#include <sys/timex.h>

#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "model/stats.h"
#include "supervisor/alloc/hook_checks.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/node/host_usage.h"
#include "supervisor/table/alloc_table.h"

#define LOSS_SHOWN_NS   ((int64_t)24 * 3600 * NS_PER_S) /* a restart is reported for a day */
#define FULL_PERCENT    95                              /* of the disk's bytes or inodes */
#define DRIFT_MAX_S     5                               /* between this clock and the servers' */
#define CHECKS_MAX      100                             /* checks that are reported one by one */
#define CHECK_TEXT_SIZE 160                             /* of a check's output, with the NUL */

static void add_problem(json_t *list, const char *kind, const char *when, int64_t time_ns,
    const char *fmt, ...) __attribute__((format(printf, 5, 6)));

/* Adds a sentence. `when` is the member that has the time, "Since" or "Last"; NULL: no time. */
static void
add_problem(json_t *list, const char *kind, const char *when, int64_t time_ns, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	json_t *one;
	va_list ap;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	one = json_pack("{s:s, s:o}", "Kind", kind, "Text", json_string(text) ?: json_string(fmt));
	if (when)
		(void)json_object_set_new(one, when, json_integer(time_ns));
	(void)json_array_append_new(list, one);
}

/* The agent's processes. */

static void
find_losses(struct sup *sup, json_t *list)
{
	int64_t now = clock_real_ns(), last;
	bool died = store_was_left(sup->store, &last);

	/* With generation 1 the whole agent was started, maybe after a power cut. */
	if (sup->args.generation > 1 && died && now - last < LOSS_SHOWN_NS)
		add_problem(
		    list, "process", "Last", last, "the supervisor died and was started again");
	for (enum ipc_peer peer = 0; peer < IPC_PEERS; peer++) {
		uint32_t n = child_losses(sup, peer, &last);

		if (n && now - last < LOSS_SHOWN_NS)
			add_problem(list, "process", "Last", last,
			    n == 1 ? "%s died and was started again"
				   : "%s died %u times and was started again",
			    ipc_peer_name(peer), n);
	}
}

static void
find_servers(struct sup *sup, json_t *list)
{
	const struct source_api *source = sup->source->api;
	const char *why = "";
	int64_t since = source->server_lost_since ? source->server_lost_since(sup, &why) : 0;

	if (since)
		add_problem(list, "servers", "Since", since, "no server is reachable%s%s",
		    *why ? ": " : "", why);
}

/* The machine. */

static void
find_disk(struct sup *sup, json_t *list)
{
	cleanup_done(host_stats) struct host_stats stats;
	const struct host_disk *disk;

	host_stats_init(&stats);
	host_usage_alloc_dir(sup, &stats);
	disk = stats.alloc_dir_stats;
	if (disk->used_percent >= FULL_PERCENT)
		add_problem(list, "disk", NULL, 0,
		    "the disk of %s is %d %% full: %llu MiB are free", sup->args.data_dir,
		    (int)disk->used_percent, (unsigned long long)disk->available >> 20);
	if (disk->inodes_used_percent >= FULL_PERCENT)
		add_problem(list, "disk", NULL, 0, "the disk of %s has used %d %% of its inodes",
		    sup->args.data_dir, (int)disk->inodes_used_percent);
}

/* Answers of servers take time, and their times are whole seconds. */
static void
find_drift(struct sup *sup, json_t *list)
{
	const struct source_api *source = sup->source->api;
	int64_t ahead_s = source->clock_ahead_s ? source->clock_ahead_s(sup) : 0;

	if (ahead_s > DRIFT_MAX_S || ahead_s < -DRIFT_MAX_S)
		add_problem(list, "clock", NULL, 0, "the clock is %lld s %s the servers' clock",
		    (long long)(ahead_s > 0 ? ahead_s : -ahead_s),
		    ahead_s > 0 ? "ahead of" : "behind");
}

/* The kernel sets this state when no time service has disciplined the clock for hours, or ever.
 * Agents for development often run on machines without one. */
static void
find_clock(struct sup *sup, json_t *list)
{
	struct timex tx = { .modes = 0 };

	if (!sup->args.dev && adjtimex(&tx) == TIME_ERROR && (tx.status & STA_UNSYNC))
		add_problem(list, "clock", NULL, 0,
		    "the clock is not synchronized: no time service has corrected it for hours, so "
		    "it drifts");
}

/* Checks of services. */

static void
add_check(json_t *list, const struct sup_alloc *sa, const struct check_result *result)
{
	cleanup_free char *name = NULL;
	char output[CHECK_TEXT_SIZE];

	(void)utf8_sanitize(
	    output, sizeof output, str(result->output), strlen(str(result->output)));
	/* A check without a name is called `service: "web" check`. */
	if (strncmp(str(result->check), "service: \"", 10) != 0)
		name = mem_printf("check \"%s\"", str(result->check));
	add_problem(list, "check", NULL, 0, "%s of service %s fails in %.8s (%s): %s",
	    name ?: "the check", str(result->service), sa->a.id, str(sa->a.name), output);
}

static void
find_checks(struct sup *sup, const struct api_req *req, json_t *list)
{
	const struct source_api *source = sup->source->api;
	size_t n = 0;

	alloc_foreach(sup, sa)
	{
		if (!sa->runner ||
		    (source->shows && !source->shows(sup, req, str(sa->a.namespace))))
			continue;
		for (const struct check *c = checks_next(alloc_checks(sa->runner), NULL); c;
		     c = checks_next(alloc_checks(sa->runner), c))
			if (check_result(c)->status == CHECK_FAILURE && n++ < CHECKS_MAX)
				add_check(list, sa, check_result(c));
	}
	if (n > CHECKS_MAX)
		add_problem(list, "check", NULL, 0, "%zu more checks fail", n - CHECKS_MAX);
}

void
api_get_problems(struct sup *sup, struct api_req *req)
{
	json_t *list = json_array();

	find_servers(sup, list);
	find_losses(sup, list);
	find_disk(sup, list);
	find_clock(sup, list);
	find_drift(sup, list);
	find_checks(sup, req, list);
	api_reply_json(req, list);
}
