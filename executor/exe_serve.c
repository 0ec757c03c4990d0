// SPDX-License-Identifier: Apache-2.0
/* exe_serve.c: the executor's loop: output, peers, the task's end, timers. Runs in: executor, after
 * its drop. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "executor/exe_journal.h"
#include "executor/exe_start.h"

#define STACK_TRIM 65536

/* The order of the poll entries; peers follow. */
enum {
	POLL_SIGNALS,
	POLL_STDOUT,
	POLL_STDERR,
	POLL_LISTEN,
	POLL_LEASE,
	POLL_EVENTS,
	POLL_JOURNAL,
	POLL_PEERS,
	POLL_ALL = POLL_PEERS + EXE_PEERS_MAX
};

static void
note_status(struct exe *x, int status)
{
	x->pid = 0;
	x->gone = true;
	x->stop_at_ms = 0;
	if (!WIFSIGNALED(status)) {
		x->record.exit_code = WEXITSTATUS(status);
		return;
	}
	x->record.exit_signal = WTERMSIG(status);
	x->record.flags |= x->sent >> (WTERMSIG(status) - 1) & 1 ? EXE_END_SENT : EXE_END_FOREIGN;
}

static bool
reap_children(struct exe *x)
{
	struct signalfd_siginfo info;
	bool any = false;
	int status;
	pid_t pid;

	while (read(x->signals, &info, sizeof info) > 0)
		any = true;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		any = true;
		if (pid == x->pid)
			note_status(x, status);
		else if (pid == x->sync_pid)
			x->record.flags |= status == 0 ? EXE_END_SYNCED : EXE_END_SYNC_LATE;
	}
	return any;
}

/* Returns true if no process of the task is left. Processes that outlive the task's main process
 * are killed, once. */
static bool
cgroup_is_empty(struct exe *x)
{
	char text[256];
	ssize_t n = pread(x->events_fd, text, sizeof text - 1, 0);

	if (n < 0)
		return errno == ENODEV; /* exec-helper has removed the cgroup */
	text[n] = '\0';
	if (strstr(text, "populated 0"))
		return true;
	if (!x->swept)
		exe_cgroup_kill(x);
	x->swept = true;
	return false;
}

static void
on_timeout(struct exe *x)
{
	/* A turn waits at most an hour; a longer kill timeout continues in the next turn. */
	if (x->stop_at_ms == 0 || clock_ms() < x->stop_at_ms)
		return;
	x->stop_at_ms = UINT64_MAX;
	if (x->sync_pid > 0) {
		x->record.flags |= x->record.flags & EXE_END_SYNCED ? 0 : EXE_END_SYNC_LATE;
		return;
	}
	x->record.flags |= EXE_END_KILLED;
	x->sent |= 1ull << (SIGKILL - 1);
	exe_cgroup_kill(x);
}

static int
timeout_ms(const struct exe *x)
{
	uint64_t at = x->stop_at_ms == 0 ? UINT64_MAX : x->stop_at_ms, now;

	if (exe_journal_waits(x) && x->journal.wait_until_ms < at)
		at = x->journal.wait_until_ms;
	if (at == UINT64_MAX)
		return -1;
	now = clock_ms();
	if (at <= now)
		return 0;
	return at - now > 3600000 ? 3600000 : (int)(at - now);
}

/* Handles the events of one turn. Returns their number. */
static unsigned
handle_events(struct exe *x, const struct pollfd *p)
{
	unsigned handled = 0;

	if (p[POLL_SIGNALS].revents)
		handled += reap_children(x);
	/* Counted even if the pipe is empty by now, because the task can read its own pipes. */
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		if (p[POLL_STDOUT + i].revents) {
			(void)exe_log_pump(x, i);
			handled++;
		}
	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		if (p[POLL_PEERS + i].revents)
			handled += exe_peer_read(x, i);
	if (p[POLL_LISTEN].revents)
		handled += exe_peer_accept(x);
	if (p[POLL_LEASE].revents)
		handled += exe_lease_fired(x);
	/* kernfs reports POLLPRI if the file has changed since the last read; the loop reads it. */
	if (p[POLL_EVENTS].revents & POLLPRI)
		handled++;
	if (p[POLL_JOURNAL].revents)
		handled += exe_journal_retry(x);
	return handled;
}

static int
run_turn(struct exe *x)
{
	const bool wait = exe_journal_waits(x);
	struct pollfd p[POLL_ALL] = {
		[POLL_SIGNALS] = { .fd = x->signals, .events = POLLIN },
		[POLL_STDOUT] = { .fd = wait ? -1 : x->logs[0].pipe, .events = POLLIN },
		[POLL_STDERR] = { .fd = wait ? -1 : x->logs[1].pipe, .events = POLLIN },
		[POLL_JOURNAL] = { .fd = wait ? x->journal.fd : -1, .events = POLLOUT },
		[POLL_LISTEN] = { .fd = x->listen, .events = POLLIN },
		[POLL_LEASE] = { .fd = x->lease_timer, .events = POLLIN },
		[POLL_EVENTS] = { .fd = x->gone ? x->events_fd : -1, .events = POLLPRI },
	};
	int n;

	for (size_t i = 0; i < EXE_PEERS_MAX; i++)
		p[POLL_PEERS + i] = (struct pollfd){ .fd = x->peers[i], .events = POLLIN };
	n = poll(p, POLL_ALL, timeout_ms(x));
	if (n < 0)
		return errno == EINTR ? 0 : -errno;
	if (n == 0)
		on_timeout(x);
	if (wait && clock_ms() >= x->journal.wait_until_ms)
		(void)exe_journal_retry(x);
	return n > 0 && handle_events(x, p) == 0 ? -EDEADLK : 0;
}

/* The set-up used more stack than the loop needs, so its pages are released. */
static void
trim_stack(void)
{
	uintptr_t here = (uintptr_t)__builtin_frame_address(0) & ~(uintptr_t)4095;

	(void)madvise((void *)(here - STACK_TRIM - 4096), STACK_TRIM, MADV_DONTNEED);
}

int
exe_serve(struct exe *x)
{
	trim_stack();
	if (exe_terminal_take(x) < 0) {
		exe_cgroup_kill(x);
		(void)exe_record_write(x);
		exe_peers_tell_state(x);
		return 1;
	}
	x->lease_ms = x->keep.lease_ms;
	exe_journal_begin(x);
	exe_lease_arm(x);
	if (x->session)
		exe_peer_greet(x);
	for (;;) {
		int r = run_turn(x);

		/* A turn that handled nothing would repeat for ever: records the error and ends
		 * with the task. */
		if (r < 0) {
			x->record.error = -r;
			x->record.flags |= EXE_END_UNKNOWN;
			exe_cgroup_kill(x);
			(void)exe_record_write(x);
			return 1;
		}
		if (x->gone && (x->record.state == EXE_ENDED || cgroup_is_empty(x)) &&
		    exe_run_end(x) == 1)
			return 0;
	}
}

int
exe_serve_failure(struct exe *x)
{
	/* Fails closed: a task does not run if its parent cannot drop root. */
	exe_cgroup_kill(x);
	(void)exe_record_write(x);
	/* As root the executor sends no messages: a waiting peer sees EOF and reads the record. */
	if (exe_sandbox_drop(x) < 0)
		return 1;
	exe_peers_tell_state(x); /* only for a session */
	for (int i = 0; i < EXE_PEERS_MAX; i++)
		(void)exe_peer_accept(x);
	return 1;
}
