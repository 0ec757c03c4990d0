// SPDX-License-Identifier: Apache-2.0
/* lau_set.c: starts, watches, restarts and ends the set of processes. Runs in: launcher. A helper
 * is started when there is something to read on its end of the socket pair. When it dies, a new
 * pair is made and announced to the supervisor, and the same rule starts it again; a helper is
 * never started in another way. When the supervisor dies, the other processes have no peer and must
 * end; then the whole set is started again. */
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/log.h"
#include "common/proc.h"
#include "common/sd.h"
#include "launcher/launcher.h"

#define RESPAWN_FIRST_MS 100 /* delay of the second restart; the first is immediate */
#define RESPAWN_MAX_MS                                                                             \
	(CRASH_BUILD ? 100 : 10000) /* a process that an operator kills is not in a restart loop   \
				     */
#define RESPAWN_RESET_MS  1000      /* a process that ran this long is restarted at once */
#define HELPER_END_MS     1000
#define SUPERVISOR_END_MS 5000
#define DRAIN_TRIES       3
#define SIGNALS_PER_TURN  64

static void
note_end(struct lau_child *c)
{
	uint64_t now = clock_ms();

	if (now - c->started_ms >= RESPAWN_RESET_MS)
		c->delay_ms = 0;
	c->not_before_ms = now + 1 + c->delay_ms; /* later than the last check of start_due() */
	c->delay_ms = c->delay_ms ? 2 * c->delay_ms : RESPAWN_FIRST_MS;
	if (c->delay_ms > RESPAWN_MAX_MS)
		c->delay_ms = RESPAWN_MAX_MS;
}

/* Makes a pair; keeps the helper's end and returns the supervisor's. */
static int
make_pair(struct lau_child *c)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return -errno;
	c->kept = pair[0];
	c->generation++;
	return pair[1];
}

/* If the supervisor cannot be told of a new helper it is treated as hung. If it has just died, its
 * SIGCHLD follows. */
static void
renew_helper(struct launcher *l, enum ipc_peer who)
{
	struct lau_child *sup = &l->children[IPC_SUPERVISOR], *c = &l->children[who];
	struct proc_link news = { .helper = who };
	cleanup_close int end = -1;
	int r;

	if (sup->link < 0)
		return;
	end = make_pair(c);
	if (end < 0) {
		log_error(
		    "make a socket pair for %s: %s", lau_child_name(who), strerrordesc_np(-end));
		note_end(c);
		return;
	}
	news.generation = c->generation;
	r = fd_send_msg(sup->link, &news, sizeof news, &end, 1, MSG_DONTWAIT);
	if (r < 0 && r != -EPIPE && r != -ECONNRESET) {
		log_error("announce the new %s to the supervisor: %s", lau_child_name(who),
		    strerrordesc_np(-r));
		(void)kill(sup->pid, SIGKILL);
	}
	if (r < 0)
		close_p(&c->kept);
}

static void
start_helper(struct launcher *l, enum ipc_peer who)
{
	struct lau_child *c = &l->children[who];
	struct err e = { 0 };

	if (lau_child_start(l, who, &c->kept, &e) < 0) {
		log_error("%s", e.msg);
		note_end(c);
		return;
	}
	CRASH_POINT(LAU_AFTER_START);
	close_p(&c->kept);
	log_debug("%s started, pid %d", lau_child_name(who), (int)c->pid);
}

/* The supervisor has the node land or retire, and remembers that if it dies. */
static void
pass_leave_signal(struct launcher *l, int signo)
{
	pid_t pid = l->children[IPC_SUPERVISOR].pid;

	l->leave_signal = pid && kill(pid, signo) == 0 ? 0 : signo;
}

static void
start_set(struct launcher *l)
{
	struct lau_child *sup = &l->children[IPC_SUPERVISOR];
	int ends[LAU_CHILDREN - 1], r;
	struct err e = { 0 };

	r = lau_lease_open(l, &e);
	if (r == 0)
		r = lau_socket_renew(l, &e);
	for (int i = 0; i < LAU_CHILDREN - 1; i++) {
		ends[i] = make_pair(&l->children[i + 1]);
		if (ends[i] < 0 && r == 0)
			r = err_set(&e, ends[i], "make a socket pair");
	}
	sup->generation++;
	if (r == 0)
		r = lau_child_start(l, IPC_SUPERVISOR, ends, &e);
	for (int i = 0; i < LAU_CHILDREN - 1; i++) {
		close_p(&ends[i]);
		if (r < 0)
			close_p(&l->children[i + 1].kept);
	}
	if (r < 0) {
		log_error("%s", e.msg);
		note_end(sup);
		return;
	}
	l->ending = l->killed = false;
	l->kill_at_ms = 0;
	if (l->stopping) /* it died during the drain */
		(void)kill(sup->pid, l->drain_signal);
	if (l->leave_signal)
		pass_leave_signal(l, l->leave_signal);
}

static bool
is_empty(const struct launcher *l)
{
	for (int i = 0; i < LAU_CHILDREN; i++)
		if (l->children[i].pid)
			return false;
	return true;
}

/* The supervisor has ended: the other processes see EOF on their sockets, finish their current
 * request and exit. */
static void
begin_end(struct launcher *l)
{
	for (int i = 0; i < LAU_CHILDREN; i++) {
		close_p(&l->children[i].link);
		close_p(&l->children[i].kept);
	}
	l->ending = true;
	l->killed = false;
	l->kill_at_ms = clock_ms() + HELPER_END_MS;
}

/* Asks the supervisor to end and leave the tasks running, by EOF on its link. A second call does
 * not extend its deadline. */
static void
end_supervisor(struct launcher *l)
{
	struct lau_child *sup = &l->children[IPC_SUPERVISOR];

	if (!l->ending && sup->link >= 0)
		l->kill_at_ms = clock_ms() + SUPERVISOR_END_MS;
	close_p(&sup->link);
}

/* Acts on the supervisor's exit code; proc.h documents the codes. */
static void
on_supervisor_end(struct launcher *l, int status)
{
	struct lau_child *sup = &l->children[IPC_SUPERVISOR];
	bool asked = sup->link < 0 && !l->killed;
	int code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
	bool finished = code == 0;

	if (code == PROC_EXIT_GIVE_UP || code == PROC_EXIT_LEFT) {
		l->done = true;
		l->exit_code = code == PROC_EXIT_LEFT ? 0 : code;
	} else if (l->stopping) {
		l->done =
		    !l->drain_signal || finished || l->forced || ++l->drain_tries == DRAIN_TRIES;
	}
	if (asked && !l->stopping) {
		sup->delay_ms = 0;
		sup->not_before_ms = 0;
	}
	begin_end(l);
}

static void
on_child_end(struct launcher *l, enum ipc_peer who, int status)
{
	struct lau_child *c = &l->children[who];
	bool expected = l->ending || l->stopping ||
			(WIFEXITED(status) &&
			    (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == PROC_EXIT_LEFT));

	if (!expected && WIFSIGNALED(status))
		log_warn("%s (pid %d) was killed by signal %d (%s)", lau_child_name(who),
		    (int)c->pid, WTERMSIG(status), strsignal(WTERMSIG(status)));
	else if (!expected)
		log_warn("%s (pid %d) ended with exit code %d", lau_child_name(who), (int)c->pid,
		    WEXITSTATUS(status));
	c->pid = 0;
	CRASH_POINT(LAU_AFTER_REAP);
	/* A process that ended because the supervisor did is not logged as a failure. */
	if (expected)
		c->not_before_ms = 0;
	else
		note_end(c);
	if (who == IPC_SUPERVISOR)
		on_supervisor_end(l, status);
	else
		close_p(&c->link);
}

/* Waits for any pid: the launcher is the subreaper, so executors of a dead exec-helper are its
 * children. */
static void
reap_children(struct launcher *l)
{
	int status;
	pid_t pid;

	while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
		for (int i = 0; i < LAU_CHILDREN; i++)
			if (l->children[i].pid == pid)
				on_child_end(l, (enum ipc_peer)i, status);
}

static void
warn_fixed(const char *what, const char *old, const char *new)
{
	if (strcmp(old, new) != 0)
		log_warn("a change of %s needs a restart, not a reload", what);
}

/* An invalid configuration changes nothing. */
static void
reload(struct launcher *l)
{
	struct lau_config new;
	struct err e = { 0 };
	char state[64];
	int r;

	/* With Type=notify-reload systemd ignores what seems older than its request: rounded up. */
	(void)snprintf(state, sizeof state, "RELOADING=1\nMONOTONIC_USEC=%llu",
	    (unsigned long long)clock_ms() * 1000 + 999);
	(void)notify_send(state);
	r = lau_config_read(l, &new, &e);
	if (r == 0 && (r = lau_listen(l, new.config, &e)) < 0)
		lau_config_done(&new);
	if (r < 0) {
		log_error("%s; the agent keeps its current configuration", e.msg);
		(void)notify_send("READY=1");
		return;
	}
	warn_fixed("data_dir", l->config.config->data_dir, new.config->data_dir);
	warn_fixed("runtime_dir", l->config.config->runtime_dir, new.config->runtime_dir);
	warn_fixed("cgroup_parent", l->config.policy->cgroup_parent, new.policy->cgroup_parent);
	lau_config_done(&l->config);
	l->config = new;
	log_info("configuration reloaded");
	end_supervisor(l);
}

static void
stop(struct launcher *l, int signo)
{
	struct lau_child *sup = &l->children[IPC_SUPERVISOR];

	(void)notify_send("STOPPING=1");
	if (l->stopping && l->drain_signal) {
		log_warn("not waiting any longer: %s",
		    l->dev ? "killing the remaining tasks" : "the remaining tasks keep running");
		l->forced = true;
	}
	if (!l->stopping && (l->dev || l->config.config->drain_signals >> signo & 1)) {
		log_info("draining; send the signal again to stop waiting");
		l->drain_signal = signo;
	}
	l->stopping = true;
	if (sup->pid == 0)
		l->done = !l->drain_signal || l->forced;
	else if (!l->drain_signal || (l->forced && !l->dev))
		end_supervisor(l);
	else
		(void)kill(sup->pid, l->forced ? SIGKILL : l->drain_signal);
}

/* signalfd delivers the lowest number first, which is SIGHUP: only one signal is read per turn, so
 * that a flood of SIGHUP delays neither other work nor SIGTERM. */
static void
on_signal(struct launcher *l)
{
	struct signalfd_siginfo si;
	bool hup = false;

	for (int i = 0; i < SIGNALS_PER_TURN && read(l->signal_fd, &si, sizeof si) > 0; i++) {
		if (si.ssi_signo == SIGCHLD)
			reap_children(l);
		else if (si.ssi_signo == SIGHUP)
			hup = true;
		else if (si.ssi_signo == SIGUSR1 || si.ssi_signo == SIGUSR2)
			pass_leave_signal(l, (int)si.ssi_signo);
		else
			stop(l, (int)si.ssi_signo);
	}
	if (hup && !l->stopping)
		reload(l);
}

/* The deadline of an end has passed. */
static void
on_deadline(struct launcher *l)
{
	for (int i = 0; i < LAU_CHILDREN; i++) {
		struct lau_child *c = &l->children[i];

		if (c->pid == 0 || (!l->ending && i != IPC_SUPERVISOR))
			continue;
		if (l->killed) {
			log_error("%s (pid %d) did not end after SIGKILL: not waiting for it",
			    lau_child_name(i), (int)c->pid);
			c->pid = 0;
			if (i != IPC_SUPERVISOR)
				continue;
			on_supervisor_end(l, SIGKILL);
			return;
		}
		log_warn("%s (pid %d) did not end in time: killed", lau_child_name(i), (int)c->pid);
		(void)kill(c->pid, SIGKILL);
	}
	l->killed = true;
	l->kill_at_ms = clock_ms() + HELPER_END_MS;
}

static bool
waits(const struct lau_child *c, uint64_t now)
{
	return c->pid == 0 && c->not_before_ms > now;
}

/* Returns the poll timeout; -1: none. checked_ms: when start_due() checked last what is due; what
 * has become due since then is not started yet. */
static int
next_timeout(const struct launcher *l, uint64_t checked_ms)
{
	uint64_t now = clock_ms(), next = UINT64_MAX;

	if (l->kill_at_ms && !(l->ending && is_empty(l)))
		next = l->kill_at_ms;
	for (int i = 0; i < LAU_CHILDREN; i++)
		/* While the set ends, it waits only to start its next supervisor. */
		if (l->ending == (i == IPC_SUPERVISOR) && waits(&l->children[i], checked_ms) &&
		    l->children[i].not_before_ms < next)
			next = l->children[i].not_before_ms;
	if (next == UINT64_MAX)
		return -1;
	return next <= now ? 0 : (int)(next - now);
}

/* Starts whatever is due: the set, or a new pair for a helper that ended. Returns the time of this
 * check. */
static uint64_t
start_due(struct launcher *l)
{
	uint64_t now = clock_ms();

	if (l->ending) {
		if (is_empty(l) && !l->done && !waits(&l->children[IPC_SUPERVISOR], now))
			start_set(l);
		return now;
	}
	for (int i = IPC_EXEC_HELPER; i < LAU_CHILDREN; i++) {
		struct lau_child *c = &l->children[i];

		if (c->pid == 0 && c->kept < 0 && !waits(c, now))
			renew_helper(l, (enum ipc_peer)i);
	}
	return now;
}

/* POLLIN on the kept end of a helper starts it; nothing is read. EOF raises POLLIN too, so POLLHUP
 * is checked first. */
static void
on_kept(struct launcher *l, enum ipc_peer who, short revents)
{
	struct lau_child *c = &l->children[who];

	if (c->kept < 0 || revents == 0)
		return;
	if (revents & (POLLHUP | POLLERR)) {
		close_p(&c->kept);
		note_end(c);
	} else {
		start_helper(l, who);
	}
}

/* checked_ms: the result of the last start_due(). Returns that of the next one. */
static uint64_t
run_turn(struct launcher *l, uint64_t checked_ms)
{
	struct pollfd fds[LAU_CHILDREN] = { [0] = { .fd = l->signal_fd, .events = POLLIN } };

	for (int i = IPC_EXEC_HELPER; i < LAU_CHILDREN; i++) {
		fds[i].fd = waits(&l->children[i], checked_ms) ? -1 : l->children[i].kept;
		fds[i].events = POLLIN;
	}
	if (poll(fds, LAU_CHILDREN, next_timeout(l, checked_ms)) < 0)
		return checked_ms;
	for (int i = IPC_EXEC_HELPER; i < LAU_CHILDREN; i++)
		on_kept(l, (enum ipc_peer)i, fds[i].revents);
	if (fds[0].revents)
		on_signal(l);
	if (l->kill_at_ms && clock_ms() >= l->kill_at_ms)
		on_deadline(l);
	return start_due(l);
}

int
lau_set_run(struct launcher *l)
{
	uint64_t checked_ms;

	l->ending = true; /* nothing runs yet: the first turn starts the set */
	checked_ms = start_due(l);
	while (!l->done || !is_empty(l))
		checked_ms = run_turn(l, checked_ms);
	return l->exit_code;
}
