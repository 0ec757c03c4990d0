// SPDX-License-Identifier: Apache-2.0
/* sup_main.c: the supervisor, from its constant, and the order in which its parts are made. Runs
 * in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <systemd/sd-daemon.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/config_map.h"
#include "common/code.h"
#include "common/id.h"
#include "common/ipc_protobuf.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/proc.h"
#include "supervisor/core/journal.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/alloc/alloc_fs.h"
#include "supervisor/alloc/alloc_gc.h"
#include "supervisor/alloc/client.h"
#include "supervisor/alloc/departure.h"
#include "supervisor/alloc/leave.h"
#include "supervisor/audit/audit_log.h"
#include "supervisor/driver/driver.h"
#include "supervisor/driver/driver_breaker.h"
#include "supervisor/driver/lease_page.h"
#include "supervisor/image/images.h"
#include "supervisor/http/api.h"
#include "supervisor/http/http_audit.h"
#include "supervisor/http/task_socket.h"
#include "supervisor/driver/run.h"
#include "supervisor/node/node_cni.h"
#include "supervisor/node/node_events.h"
#include "supervisor/node/node_meta.h"
#include "supervisor/node/node_state.h"
#include "supervisor/node/node_troubles.h"
#include "supervisor/metrics/statsd.h"
#include "supervisor/source/source_api.h"
#include "supervisor/core/changed.h"
#include "supervisor/core/reserve.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/store.h"
#include "supervisor/core/sup.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/core/sup_queue.h"
#include "supervisor/core/sup_tidy.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/sup_filter.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/service/checks.h"
#include "supervisor/volume/plugin_configured.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volumes.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/api/fs_stream.h"

static struct sup sup = { .run_dir_fd = -1, .sock_dir_fd = -1, .log_dir_fd = -1 };

static void
on_drained(struct sup *s)
{
	journal_info(JOURNAL_NODE, NULL, "the node is drained");
	s->exiting = true;
}

static void
on_left(struct sup *s)
{
	s->exiting = true;
}

static int
on_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	const struct client_stop all = { .why = "the agent was told to end", .done = on_drained };
	const struct leave_plan plan = { .drain = leave_strategy(sup.config),
		.message = "shutting down",
		.why = "the agent drains its node before it ends",
		.ends_unit = true,
		.done = on_left };

	(void)sd_notify(0, "STOPPING=1");
	if (!sup.args.dev && (sup.config->drain_signals >> si->ssi_signo & 1)) {
		leave_begin(&sup, &plan);
	} else if (sup.args.dev && !sup.draining) {
		sup.draining = true; /* not a drain of the node, which an operator requests and
					which outlives the agent */
		client_stop_all(&sup, &all);
	} else {
		sup.exiting = true;
	}
	return 0;
}

static int
on_leave_signal(sd_event_source *source, const struct signalfd_siginfo *si, void *userdata)
{
	const char *name = si->ssi_signo == SIGUSR1 ? "SIGUSR1" : "SIGUSR2";

	http_audit_signal(&sup, name, si->ssi_uid, (pid_t)si->ssi_pid);
	departure_signal(&sup, (int)si->ssi_signo);
	return 0;
}

static int
open_dir(const char *base, const char *name, int *ret, struct err *e)
{
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/%s", base, name);
	*ret = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (*ret >= 0)
		return 0;
	if (errno != EACCES)
		return err_set(e, -errno, "open %s", path);
	for (char *at = strchr(path + 1, '/'); at; *at = '/', at = strchr(at + 1, '/')) {
		*at = '\0';
		if (access(path, X_OK) < 0)
			return err_say(e, -EACCES,
			    "%s cannot be reached by the agent's user %u: it may not search %s; "
			    "permit "
			    "it (chmod o+x), or choose another directory",
			    base, getuid(), path);
	}
	return err_set(e, -EACCES, "open %s", path);
}

/* Each running task needs a descriptor; the limit is the launcher's hard limit. */
static void
raise_nofile(void)
{
	struct rlimit rl;

	if (getrlimit(RLIMIT_NOFILE, &rl) < 0)
		return;
	rl.rlim_cur = rl.rlim_max;
	if (setrlimit(RLIMIT_NOFILE, &rl) < 0)
		log_warn(
		    "raise the limit of open files to %llu: %m", (unsigned long long)rl.rlim_max);
}

/* random() spreads retries and restarts of many agents over time. */
static void
seed_random(void)
{
	struct id id = id_random();
	unsigned seed;

	memcpy(&seed, &id, sizeof seed);
	srandom(seed);
}

/* The launcher starts this process with all of them blocked, so that none is lost. */
static int
take_signals(void)
{
	static const struct {
		int signo;
		sd_event_signal_handler_t handle;
	} signals[] = { { SIGTERM, on_signal }, { SIGINT, on_signal }, { SIGUSR1, on_leave_signal },
		{ SIGUSR2, on_leave_signal } };
	sigset_t mask;
	int r = 0;

	(void)sigemptyset(&mask);
	for (size_t i = 0; i < ELEMENTSOF(signals); i++)
		(void)sigaddset(&mask, signals[i].signo);
	(void)sigprocmask(SIG_BLOCK, &mask, NULL);
	for (size_t i = 0; i < ELEMENTSOF(signals) && r >= 0; i++)
		r = sd_event_add_signal(sup.event, NULL, signals[i].signo, signals[i].handle, NULL);
	return r;
}

static int
begin_loop(struct err *e)
{
	int r;

	r = boot_id_read(sup.boot_id);
	if (r < 0)
		return err_set(e, r, "read the boot id");
	r = sd_event_new(&sup.event);
	if (r < 0)
		return err_set(e, r, "make the work loop");
	r = take_signals();
	if (r >= 0)
		r = sd_event_set_watchdog(sup.event, true);
	return r < 0 ? err_set(e, r, "make the work loop") : 0;
}

static int
begin_state(struct err *e)
{
	struct err why = { 0 };
	char dir[4096];
	int r;

	(void)snprintf(dir, sizeof dir, "%s/state", sup.args.data_dir);
	if ((r = open_dir(sup.args.data_dir, "run", &sup.run_dir_fd, e)) < 0 ||
	    (r = open_dir(sup.args.data_dir, "logs", &sup.log_dir_fd, e)) < 0 ||
	    (r = open_dir(sup.args.runtime_dir, "x", &sup.sock_dir_fd, e)) < 0)
		return r;
	r = store_open(dir, &sup.store, e);
	if (r < 0)
		return r;
	sup.reserve = reserve_new(dir);
	sup.seal = seal_new(dir, &why);
	if (why.code < 0)
		journal_error(JOURNAL_STATE, NULL, "%s", why.msg);
	return 0;
}

static int
serve_api(struct err *e)
{
	static const struct run_socket_ops sockets = { task_socket_open, task_socket_close };
	const struct source_api *source = sup.source->api;

	fs_followers_new(&sup);
	monitor_new(&sup);
	statsd_new(&sup);
	audit_log_new(&sup);
	runs_serve_sockets(&sup, &sockets);
	return api_new(&sup, api_routes_make(source), &source->backend, e);
}

/* Each part needs those before it. Returns 1 if the agent is to end (departure.h). The socket comes
 * last, so that requests are answered from the restored state. */
static int
begin_parts(struct err *e)
{
	int64_t opened_ns;
	int r;

	turn_new(&sup);
	queues_new(&sup);
	tidy_new(&sup);
	changed_new(&sup);
	r = departure_new(&sup, e);
	if (r != 0)
		return r;
	alloc_table_new(&sup);
	runs_new(&sup);
	driver_breakers_new(&sup);
	plugins_new(&sup);
	check_queues_new(&sup);
	if ((r = sup_timers_open(&sup, e)) < 0 || (r = children_new(&sup, e)) < 0 ||
	    (r = node_state_new(&sup, e)) < 0 || (r = node_events_new(&sup, e)) < 0 ||
	    (r = node_troubles_new(&sup, e)) < 0 || (r = node_meta_new(&sup, e)) < 0 ||
	    (r = volumes_new(&sup, e)) < 0 || (r = images_new(&sup, e)) < 0)
		return r;
	drivers_fingerprint(&sup);
	driver_breakers_load(&sup);
	plugins_configured_new(&sup);
	sup.source =
	    sup.config->n_servers > 0 ? source_nomad_new(&sup, e) : source_local_new(&sup, e);
	if (!sup.source)
		return e->code;
	if ((r = sup.source->ops->load(sup.source, e)) < 0)
		return r;
	node_count_disk(&sup);
	node_cni_take(&sup);
	if ((r = client_restore(&sup, e)) < 0 || (r = sup.source->ops->start(sup.source, e)) < 0)
		return r;
	departure_start(&sup);
	lease_page_watch(&sup);
	alloc_gc_new(&sup);
	alloc_fs_new(&sup);
	if (store_was_left(sup.store, &opened_ns))
		tidy_secret(&sup); /* the last supervisor may have removed one */
	return serve_api(e);
}

static void
end_parts(void)
{
	statsd_free(&sup);
	api_free(&sup);
	audit_log_free(&sup);
	lease_page_unwatch(&sup);
	if (sup.source)
		sup.source->ops->free(sup.source);
	sup.source = NULL;
	alloc_gc_free(&sup);
	leave_free(&sup);
	departure_free(&sup);
	client_free(&sup);
	check_queues_free(&sup);
	images_free(&sup);
	volumes_free(&sup);
	plugins_configured_free(&sup);
	plugins_free(&sup);
	driver_breakers_free(&sup);
	runs_free(&sup);
	monitor_free(&sup);
	fs_followers_free(&sup);
	alloc_fs_free(&sup);
	node_meta_free(&sup);
	node_troubles_free(&sup);
	node_events_free(&sup);
	node_state_free(&sup);
	queues_free(&sup);
	children_free(&sup);
	alloc_table_free(&sup);
	changed_free(&sup);
	tidy_free(&sup);
	turn_free(&sup);
	reserve_free(sup.reserve);
	store_close(sup.store);
	seal_free(sup.seal);
	sd_event_unref(sup.event);
}

static int
run(void *state, const struct proc_args *args)
{
	struct err e = { 0 };
	int r;

	sup.args = *args;
	journal_open();
	raise_nofile();
	seed_random();
	sup.config = config_map(FD_CONFIG, &e);
	if (!sup.config || begin_loop(&e) < 0) {
		log_error("%s", e.msg);
		return 1;
	}
	r = begin_state(&e);
	if (r < 0) {
		log_error("%s", e.msg);
		return r == -EBADMSG || r == -EACCES ? PROC_EXIT_GIVE_UP : 1;
	}
	r = begin_parts(&e);
	if (r > 0)
		return PROC_EXIT_LEFT;
	if (r < 0) {
		log_error("%s", e.msg);
		return r == -ESHUTDOWN ? PROC_EXIT_GIVE_UP : 1;
	}
	journal_info(JOURNAL_READY, NULL, "ready: node %.8s, %u allocations, work comes from: %s",
	    node_get(&sup)->id, sup.allocs->n, sup.source->ops->name);
	(void)sd_notifyf(0, "READY=1\nSTATUS=%u allocations", sup.allocs->n);
	store_let_go(sup.store);
	code_let_go(); /* GnuTLS, which libmicrohttpd links, has been initialised but is not used */
	r = turn_loop(&sup);
	end_parts();
	return r != 0 ? r : sup.exit_code;
}

static const struct proc_spec supervisor = {
	.name = "supervisor",
	.peer = IPC_SUPERVISOR,
	.codec = &ipc_protobuf,
	.no_new_privs = true,
	.filter = &sup_prog,
	.run = run,
};

int
main(int argc, char **argv)
{
	json_set_alloc_funcs(mem_alloc, free); /* jansson never runs out of memory */
	return proc_main(&supervisor, argc, argv);
}
