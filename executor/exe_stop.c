// SPDX-License-Identifier: Apache-2.0
/* exe_stop.c: signals, the stop of a task, and the lease. Runs in: executor, after its drop. */
#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "common/lease.h"
#include "common/clock.h"
#include "executor/exe.h"

int
exe_task_signal(struct exe *x, int signo)
{
	/* The process was not reaped yet, so the pid is still valid. */
	if (x->pid <= 0 || kill(x->pid, signo) < 0)
		return -ESRCH;
	x->sent |= 1ull << (signo - 1);
	return 0;
}

void
exe_cgroup_kill(struct exe *x)
{
	while (write(x->kill_fd, "1", 1) < 0 && errno == EINTR)
		;
}

void
exe_task_stop(struct exe *x, int signo, uint64_t timeout_ms)
{
	uint64_t now = clock_ms(),
		 at = timeout_ms > UINT64_MAX - now - 1 ? UINT64_MAX : now + timeout_ms;

	if (x->gone)
		return;
	/* A second stop may shorten the kill timeout but not lengthen it. */
	if (x->stop_at_ms == 0 || at < x->stop_at_ms)
		x->stop_at_ms = at;
	if (timeout_ms > 0)
		(void)exe_task_signal(x, signo);
	if (x->record.state == EXE_RUNNING) {
		x->record.state = EXE_STOPPING;
		exe_peers_tell_state(x);
	}
}

/* The lease was not renewed if the page cannot be read or has the same value, even if that is in
 * the future. */
static void
read_page(struct exe *x)
{
	struct lease_page page;

	if (lease_read(x->lease_fd, &page) < 0 || (x->lease_read && page.last_ok == x->lease_ok))
		return;
	x->lease_read = true;
	x->lease_ok = page.last_ok;
	x->lease_deadline_ns = lease_deadline_ns(&page, x->lease_ms, clock_boot_ns());
}

/* Sets the timer to the deadline. Before the first beat the deadline is far away and the first beat
 * would bring it nearer, so until then the page is read once per limit. */
static void
set_timer(struct exe *x)
{
	uint64_t now = clock_boot_ns(), at = x->lease_deadline_ns;
	struct itimerspec when = { 0 };

	if (x->lease_ok == 0 && at > now && x->lease_ms < (at - now) / 1000000u)
		at = now + x->lease_ms * 1000000u;
	when.it_value.tv_sec = (time_t)(at / 1000000000u);
	when.it_value.tv_nsec = (long)(at % 1000000000u) + (at == 0);
	(void)timerfd_settime(x->lease_timer, TFD_TIMER_ABSTIME, &when, NULL);
}

void
exe_lease_arm(struct exe *x)
{
	if (x->lease_ms == 0 || x->lease_fd < 0) {
		if (x->lease_timer >= 0)
			(void)timerfd_settime(x->lease_timer, 0, &(struct itimerspec){ 0 }, NULL);
		return;
	}
	if (x->lease_timer < 0)
		x->lease_timer = timerfd_create(CLOCK_BOOTTIME, TFD_CLOEXEC | TFD_NONBLOCK);
	x->lease_read = false;
	x->lease_ok = 0;
	/* The page was never read: it counts as made now. */
	x->lease_deadline_ns = lease_deadline_ns(
	    &(struct lease_page){ .started = clock_boot_ns() }, x->lease_ms, clock_boot_ns());
	read_page(x);
	set_timer(x);
}

bool
exe_lease_fired(struct exe *x)
{
	uint64_t times, now;

	if (read(x->lease_timer, &times, sizeof times) < 0)
		return false;
	if (x->gone || (x->record.flags & EXE_END_LEASE))
		return true;
	read_page(x);
	now = clock_boot_ns();
	if (x->lease_deadline_ns > now) {
		set_timer(x);
		return true;
	}
	x->record.flags |= EXE_END_LEASE;
	x->record.lease_limit_ms = x->lease_ms;
	x->record.lease_last_ok_ns = x->lease_ok;
	x->record.lease_late_ns = now - x->lease_deadline_ns;
	exe_task_stop(x, (int)x->keep.kill_signal, x->keep.kill_timeout_ms);
	return true;
}
