// SPDX-License-Identifier: Apache-2.0
/*
 * departure.c: has the node land, retire, or renew itself, step by step: the drain (leave.h), which
 * a renewal does not have, the removal of all allocs and the node's deregistration, which landing
 * does not have, the durable state, the end of the agent or (of a renewal) of this process. Each
 * step may be repeated: a new supervisor begins with the first. Runs in: supervisor.
 */
#include "supervisor/alloc/departure.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "common/proc_fd.h"
#include "model/engine/walk.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/client.h"
#include "supervisor/alloc/leave.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_state.h"
#include "supervisor/source/source.h"
#include "supervisor/table/alloc_table.h"

#define ROW "departure"
/* How long the removal and the servers may take after the drain: until the deadline, but at least
 * and at most so long. */
#define LAST_MIN_NS (5 * NS_PER_S)
#define LAST_MAX_NS (60 * NS_PER_S)
#define DISK_USEC   200000 /* between checks whether directories are removed */

#define LAUNCHER_SIZE 64
#define UNKNOWN       "-" /* a launcher without a name */

struct departure {
	enum departure_state state;
	int64_t since_ns;             /* CLOCK_REALTIME, as the deadline */
	int64_t deadline_ns;          /* -1: it has passed; 0: none */
	bool was_eligible;            /* before it began to land or retire */
	bool deregisters;             /* the servers were asked to forget the node */
	char *token;                  /* of the operator's request; NULL: none */
	char launcher[LAUNCHER_SIZE]; /* of the supervisor that wrote the row */
	struct dirty row;
	struct changed_watch work; /* while allocs are removed */
	struct sup_timer limit, disk;
};

/* Returns whether all allocs are to be removed. */
static bool
removes(const struct departure *dep)
{
	return dep->state == DEPARTURE_RETIRING || dep->state == DEPARTURE_RENEWING;
}

/* Names this agent's launcher: the boot, and the inode of the page that it makes for all of its
 * supervisors. */
static void
name_launcher(char ret[LAUNCHER_SIZE])
{
	char boot[BOOT_ID_SIZE];
	struct stat st;

	if (boot_id_read(boot) < 0 || fstat(FD_LOG_LEVEL, &st) < 0)
		(void)strcpy(ret, UNKNOWN);
	else
		(void)snprintf(ret, LAUNCHER_SIZE, "%s/%llu", boot, (unsigned long long)st.st_ino);
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	const struct departure *dep = container_of(d, struct departure, row);
	char text[160], launcher[LAUNCHER_SIZE];

	name_launcher(launcher);
	(void)snprintf(text, sizeof text, "%s %lld %lld %d %s", departure_names[dep->state],
	    (long long)dep->since_ns, (long long)dep->deadline_ns, dep->was_eligible, launcher);
	return store_meta_put(sup->store, ROW, text, e);
}

/* An operator's mark counts for one start. */
static void
forget_rejoin(const struct sup *sup)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/state/rejoin", sup->args.data_dir);
	(void)unlink(path);
}

/* The state is durable. The answers to waiting requests are sent before the process ends. */
static void
on_written(struct sup *sup, struct dirty *d)
{
	const struct departure *dep = container_of(d, struct departure, row);

	if (dep->state == DEPARTURE_LANDED || dep->state == DEPARTURE_RETIRED) {
		(void)sd_notifyf(0, "STATUS=%s", departure_names[dep->state]);
		sup->exit_code = PROC_EXIT_LEFT;
		sup->exiting = true;
	} else if (dep->state == DEPARTURE_RENEWED) {
		sup->exiting = true; /* the launcher starts the next, which is the new node */
	}
	forget_rejoin(sup);
}

static void
add_event(struct sup *sup, enum departure_state state)
{
	static const char *const messages[DEPARTURE_STATES] = {
		[DEPARTURE_NONE] = "Node takes allocations again",
		[DEPARTURE_LANDING] = "Node lands",
		[DEPARTURE_RETIRING] = "Node retires",
		[DEPARTURE_RENEWING] = "Node removes everything and joins as a new one",
	};
	cleanup_done(node_event) struct node_event ev;

	node_event_init(&ev);
	if (!messages[state] || !sup->source) /* a new node has no events */
		return;
	str_set(&ev.subsystem, "Cluster");
	str_set(&ev.message, messages[state]);
	node_event_add(sup, &ev);
}

/* Shows the state in the page of the node. */
static void
describe(struct sup *sup)
{
	enum departure_state state = sup->departure->state;

	if (sup->node) /* not yet, while the state is read */
		node_set_description(sup, state == DEPARTURE_NONE ? "" : departure_names[state]);
}

static void
enter_state(struct sup *sup, enum departure_state state)
{
	struct departure *dep = sup->departure;

	if (dep->state != state) {
		dep->since_ns = clock_real_ns();
		add_event(sup, state);
	}
	dep->state = state;
	describe(sup);
	turn_use_reserve(sup, state == DEPARTURE_LANDING || state == DEPARTURE_LANDED ||
				  state == DEPARTURE_RETIRING || state == DEPARTURE_RETIRED);
	turn_write(sup, &dep->row);
	turn_durable(sup);
	changed_mark(sup, CHANGED_DEPARTURE);
}

/* Starts. */

static bool
may_rejoin(const struct sup *sup)
{
	char path[4200];

	(void)snprintf(path, sizeof path, "%s/state/rejoin", sup->args.data_dir);
	return access(path, F_OK) == 0;
}

static int
refuse_start(const struct sup *sup, const struct departure *dep, struct err *e)
{
	char when[RFC3339_SIZE];

	(void)sd_notify(0, "STATUS=retired");
	time_format(dep->since_ns, when);
	return err_say(e, -ESHUTDOWN,
	    "this node was retired at %s and does not come back: to use %s for a new node, run "
	    "\"drover node rejoin -data-dir %s\" and start the agent; to keep it away, disable the "
	    "unit",
	    when, sup->args.data_dir, sup->args.data_dir);
}

static enum departure_state
state_by_name(const char *name)
{
	for (int i = 0; i < DEPARTURE_STATES; i++)
		if (strcmp(departure_names[i], name) == 0)
			return (enum departure_state)i;
	return DEPARTURE_NONE;
}

static int
read_row(struct sup *sup, struct departure *dep, struct err *e)
{
	cleanup_free char *text = NULL;
	long long since, deadline;
	char name[16];
	int eligible, r = store_meta_get(sup->store, ROW, &text, e);

	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return r;
	/* Older agents wrote no launcher. */
	if (sscanf(text, "%15s %lld %lld %d %63s", name, &since, &deadline, &eligible,
		dep->launcher) < 4)
		return err_say(e, -EBADMSG, "state.db: the row \"departure\" cannot be read");
	dep->state = state_by_name(name);
	dep->since_ns = since;
	dep->deadline_ns = deadline;
	dep->was_eligible = eligible;
	return 0;
}

/* The node has landed or retired, and the supervisor that did it ended before it could tell the
 * launcher. In another launcher this is a new start, also if its first supervisor has failed. */
static bool
launcher_missed_it(const struct departure *dep)
{
	char launcher[LAUNCHER_SIZE];

	name_launcher(launcher);
	return (dep->state == DEPARTURE_LANDED || dep->state == DEPARTURE_RETIRED) &&
	       strcmp(launcher, UNKNOWN) != 0 && strcmp(dep->launcher, launcher) == 0;
}

int
departure_new(struct sup *sup, struct err *e)
{
	struct departure *dep = mem_new(struct departure);
	int r;

	sup->departure = dep;
	dep->row.write = write_row;
	dep->row.written = on_written;
	dep->row.point = CRASH_ROW_DEPARTURE;
	r = read_row(sup, dep, e);
	if (r < 0)
		return r;
	if (launcher_missed_it(dep))
		return 1;
	if (dep->state == DEPARTURE_RETIRED && !may_rejoin(sup))
		return refuse_start(sup, dep, e);
	r = departure_next(
	    dep->state, dep->state == DEPARTURE_RETIRED ? DEPARTURE_REJOIN : DEPARTURE_STARTED, e);
	if (r < 0)
		return r;
	sup->new_identity = dep->state == DEPARTURE_RETIRED || dep->state == DEPARTURE_RENEWED;
	if (dep->state != DEPARTURE_RETIRED)
		forget_rejoin(sup);
	if (r != (int)dep->state)
		enter_state(sup, (enum departure_state)r);
	sup->draining = dep->state == DEPARTURE_LANDING || removes(dep);
	turn_use_reserve(sup, sup->draining);
	return 0;
}

/* Steps. */

static void
finish(struct sup *sup)
{
	struct departure *dep = sup->departure;
	int next = departure_next(dep->state, DEPARTURE_FINISHED, NULL);

	sup_timer_cancel(&dep->limit);
	sup_timer_cancel(&dep->disk);
	changed_unwatch(sup, &dep->work);
	if (next < 0)
		return;
	enter_state(sup, (enum departure_state)next);
	if (next == DEPARTURE_RENEWED)
		journal_info(JOURNAL_NODE, NULL,
		    "everything of the old node is removed: the agent begins as a new node");
	else
		journal_info(
		    JOURNAL_NODE, NULL, "the node is %s: the agent ends", departure_names[next]);
}

static void
on_deregistered(struct sup *sup, int r, const struct err *e)
{
	if (!removes(sup->departure))
		return;
	if (r >= 0)
		journal_info(JOURNAL_NODE, NULL, "the servers have forgotten the node");
	else
		journal_warn(JOURNAL_NODE, NULL,
		    "the servers do not forget the node now: %s: they do it after their "
		    "node_gc_threshold, or on \"nomad node purge\"",
		    e->msg);
	finish(sup);
}

static void
deregister(struct sup *sup)
{
	struct departure *dep = sup->departure;

	if (dep->deregisters)
		return;
	dep->deregisters = true;
	changed_unwatch(sup, &dep->work);
	sup_timer_cancel(&dep->disk);
	if (sup->source->ops->deregister)
		sup->source->ops->deregister(sup->source, dep->token, on_deregistered);
	else
		finish(sup);
}

static bool
is_removed(struct sup *sup)
{
	alloc_foreach(sup, sa)
	{
		if (sa->runner && sa->runner->destroy)
			return false;
	}
	return !child_busy(sup, IPC_MOUNT_HELPER) && !child_busy(sup, IPC_FILE_HELPER);
}

static void check_disk(void *arg);

static void
on_disk(struct sup *sup, void *arg, int r, const void *reply, int fd, const struct err *e)
{
	const struct file_root_list_rep *rep = reply;
	struct departure *dep = sup->departure;
	cleanup_close int list = fd;

	(void)list;
	if (!removes(dep))
		return;
	if (r >= 0 && rep->removing)
		sup_timer_set(sup, &dep->disk, CLOCK_BOOTTIME, DISK_USEC, check_disk, sup);
	else
		deregister(sup);
}

/* The directories are removed when file-helper's worker has ended; it would be killed with it. */
static void
check_disk(void *arg)
{
	const struct file_root_list_req req = { .root = FILE_ROOT_ALLOC };

	(void)file_call_root_list(arg, &req, on_disk, NULL);
}

static void
on_work_changed(struct sup *sup, struct changed_watch *w)
{
	if (!is_removed(sup))
		return;
	changed_unwatch(sup, w);
	check_disk(sup);
}

/* The removal, or the servers, have taken too long: the node's departure goes on without them. */
static void
on_limit(void *arg)
{
	struct sup *sup = arg;
	struct departure *dep = sup->departure;
	struct err e = { 0 };

	if (!dep->deregisters) {
		journal_warn(JOURNAL_NODE, NULL,
		    "directories or volumes of allocations are left: \"drover cleanup\" removes "
		    "them");
		sup_timer_set(sup, &dep->limit, CLOCK_BOOTTIME, LAST_MIN_NS / 1000, on_limit, sup);
		deregister(sup);
		return;
	}
	(void)err_say(&e, -ETIMEDOUT, "no server has answered");
	on_deregistered(sup, e.code, &e);
}

static int64_t
left_ns(const struct departure *dep)
{
	int64_t left;

	if (dep->deadline_ns <= 0)
		return dep->deadline_ns;
	left = dep->deadline_ns - clock_real_ns();
	return left > 0 ? left : -1;
}

static void
remove_allocs(struct sup *sup)
{
	struct departure *dep = sup->departure;
	int64_t left = left_ns(dep);

	if (left == 0 || left > LAST_MAX_NS)
		left = LAST_MAX_NS;
	if (left < LAST_MIN_NS)
		left = LAST_MIN_NS;
	sup_timer_set(sup, &dep->limit, CLOCK_BOOTTIME, (uint64_t)left / 1000, on_limit, sup);
	alloc_foreach(sup, sa)
	{
		(void)sup->source->ops->collect(sup->source, sa);
	}
	changed_watch(sup, CHANGED_WORK, &dep->work);
	changed_mark(sup, CHANGED_WORK);
}

static void
on_left(struct sup *sup)
{
	if (removes(sup->departure))
		remove_allocs(sup);
	else
		finish(sup);
}

/* Stops all allocs and hands none over: the servers have placed them elsewhere. */
static void
renew(struct sup *sup)
{
	const struct client_stop stop = { .why = "the servers have forgotten the node",
		.done = on_left };
	struct departure *dep = sup->departure;

	journal_warn(JOURNAL_NODE, NULL,
	    "the servers have not heard this node for too long, or have forgotten it: it removes "
	    "all allocations and joins as a new node");
	dep->work.fn = on_work_changed;
	dep->deregisters = false;
	sup->draining = true;
	client_stop_all(sup, &stop);
}

static void
begin(struct sup *sup)
{
	struct departure *dep = sup->departure;
	bool lands = dep->state == DEPARTURE_LANDING;
	const struct leave_plan plan = { .drain.deadline = left_ns(dep),
		.message = lands ? "landing" : "retiring",
		.why = lands ? "the node lands" : "the node retires",
		.stops_here = true,
		.done = on_left };
	char span[DURATION_SIZE] = "none";

	if (plan.drain.deadline > 0)
		duration_format(plan.drain.deadline / NS_PER_S * NS_PER_S, span);
	journal_info(JOURNAL_NODE, NULL,
	    "the node is %s (deadline: %s): it takes no new allocations",
	    departure_names[dep->state], plan.drain.deadline < 0 ? "now" : span);
	dep->work.fn = on_work_changed;
	dep->deregisters = false;
	sup->draining = true;
	leave_cancel(sup);
	leave_begin(sup, &plan);
}

static void
on_returned(struct sup *sup, int r, const struct err *e)
{
	if (sup->departure->state != DEPARTURE_RETURNING)
		return;
	if (r < 0)
		journal_warn(JOURNAL_NODE, NULL,
		    "the servers do not make this node eligible: %s: an operator can (drover node "
		    "eligibility -enable)",
		    e->msg);
	enter_state(sup, DEPARTURE_NONE);
	sup->source->ops->node_updated(sup->source);
	journal_info(JOURNAL_NODE, NULL, "the node takes allocations again");
}

/* A node that an operator had made ineligible stays so. */
static void
come_back(struct sup *sup)
{
	struct departure *dep = sup->departure;

	sup->draining = false;
	leave_cancel(sup);
	sup_timer_cancel(&dep->limit);
	sup_timer_cancel(&dep->disk);
	changed_unwatch(sup, &dep->work);
	if (sup->source->ops->come_back)
		sup->source->ops->come_back(sup->source, dep->was_eligible, on_returned);
	else
		on_returned(sup, 0, NULL);
}

void
departure_start(struct sup *sup)
{
	describe(sup);
	switch (sup->departure->state) {
	case DEPARTURE_LANDING:
	case DEPARTURE_RETIRING:
		begin(sup);
		break;
	case DEPARTURE_RENEWING:
		renew(sup);
		break;
	case DEPARTURE_RETURNING:
		come_back(sup);
		break;
	default:
		break;
	}
}

void
departure_free(struct sup *sup)
{
	struct departure *dep = sup->departure;

	if (!dep)
		return;
	sup_timer_cancel(&dep->limit);
	sup_timer_cancel(&dep->disk);
	changed_unwatch(sup, &dep->work);
	turn_forget_write(sup, &dep->row);
	if (dep->token)
		explicit_bzero(dep->token, strlen(dep->token));
	free(dep->token);
	free_p(&sup->departure);
}

/* Requests. */

enum departure_state
departure_state(const struct sup *sup)
{
	return sup->departure->state;
}

static void
set_deadline(struct departure *dep, int64_t deadline_ns)
{
	if (deadline_ns > 0 &&
	    __builtin_add_overflow(clock_real_ns(), deadline_ns, &dep->deadline_ns))
		dep->deadline_ns = INT64_MAX;
	else if (deadline_ns <= 0)
		dep->deadline_ns = deadline_ns < 0 ? -1 : 0;
}

int
departure_request(struct sup *sup, enum departure_event event, int64_t deadline_ns,
    const char *token, struct err *e)
{
	struct departure *dep = sup->departure;
	int next = departure_next(dep->state, event, e);
	struct err why = { 0 };

	if (next < 0)
		return next;
	if (turn_try_commit(sup, &why) < 0)
		return err_say(e, why.code,
		    "the node stays %s, because that cannot be stored: %s; SIGTERM ends the agent, "
		    "and "
		    "its tasks go on",
		    departure_names[dep->state], why.msg);
	if (event != DEPARTURE_CANCEL) {
		if (dep->state == DEPARTURE_NONE)
			dep->was_eligible =
			    node_get(sup)->scheduling_eligibility != NODE_INELIGIBLE;
		set_deadline(dep, deadline_ns);
		str_set(&dep->token, token);
	}
	enter_state(sup, (enum departure_state)next);
	departure_start(sup);
	return 0;
}

void
departure_signal(struct sup *sup, int signo)
{
	enum departure_event event = signo == SIGUSR1 ? DEPARTURE_LAND : DEPARTURE_RETIRE;
	const struct drain_strategy drain = leave_strategy(sup->config);
	struct err e = { 0 };
	int next = departure_next(sup->departure->state, event, &e);

	if (next == (int)sup->departure->state)
		return; /* an operator's deadline counts */
	if (next >= 0)
		next = departure_request(sup, event, drain.deadline, NULL, &e);
	if (next < 0)
		journal_warn(JOURNAL_NODE, NULL, "signal %d has no effect: %s", signo, e.msg);
}

bool
departure_is_wanted_gone(struct sup *sup)
{
	return sup->departure->state == DEPARTURE_RETIRING;
}

bool
departure_is_renewing(const struct sup *sup)
{
	return sup->departure->state == DEPARTURE_RENEWING ||
	       sup->departure->state == DEPARTURE_RENEWED;
}

json_t *
departure_show(struct sup *sup)
{
	const struct departure *dep = sup->departure;
	json_int_t n = 0;

	alloc_foreach(sup, sa)
	{
		n += sa->runner && !client_alloc_ended(sa);
	}
	return json_pack("{s:s, s:I, s:I, s:I}", "State", departure_names[dep->state], "Since",
	    (json_int_t)dep->since_ns, "Deadline", (json_int_t)dep->deadline_ns, "Allocations", n);
}
