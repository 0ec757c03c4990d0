// SPDX-License-Identifier: Apache-2.0
/* exe_run.c: the record and the end of a run. Runs in: executor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <signal.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/lease.h"
#include "executor/exe_journal.h"
#include "executor/exe_start.h"

int
exe_failed(struct exe *x, enum exe_step step, int error, uint32_t detail)
{
	x->record.state = EXE_FAILED;
	x->record.step = step;
	x->record.error = error;
	x->record.detail = detail;
	return -error;
}

int
exe_record_write(struct exe *x)
{
	x->record.sum = exe_record_sum(&x->record);
	if (pwrite(EXE_FD_RECORD, &x->record, sizeof x->record, 0) != (ssize_t)sizeof x->record)
		return -EIO;
	return 0;
}

/* The cgroup counts OOM kills, so the counter is read while the cgroup exists. v1 and v2 both have
 * a line "oom_kill N". */
static bool
was_oom_killed(struct exe *x)
{
	char text[512], *at;
	ssize_t n = x->oom_fd < 0 ? -1 : pread(x->oom_fd, text, sizeof text - 1, 0);

	if (n < 0)
		return false;
	text[n] = '\0';
	at = strstr(text, "oom_kill ");
	return at && strtoul(at + sizeof "oom_kill " - 1, NULL, 10) > 0;
}

/* Reads the output that is still in the pipes after the task's end. The number of reads is bounded
 * by what a pipe holds, because another process may keep the other end open and write for ever. */
static void
drain_logs(struct exe *x)
{
	for (size_t i = 0; i < ELEMENTSOF(x->logs); i++)
		for (int n = 0; n < EXE_DRAIN_READS && exe_log_pump(x, i) == 1; n++)
			;
	for (size_t i = 0; i < ELEMENTSOF(x->logs) && exe_journal_wanted(x); i++)
		exe_journal_finish(x, i);
}

/* After a stop by the lease the volume may move to another node, so this node's page cache must be
 * written first. A child does it, because a file system that hangs must not block the executor.
 * Returns 1 when it is done. */
static int
sync_volumes(struct exe *x)
{
	if (!(x->record.flags & EXE_END_LEASE) || x->n_syncs == 0 ||
	    (x->record.flags & (EXE_END_SYNCED | EXE_END_SYNC_LATE)))
		return 1;
	if (x->sync_pid == 0) {
		long pid = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);

		if (pid == 0) {
			int bad = 0;

			for (size_t i = 0; i < x->n_syncs; i++)
				bad |= syncfs(x->syncs[i]) < 0;
			_exit(bad);
		}
		x->sync_pid = (pid_t)pid;
		x->stop_at_ms = clock_ms() + EXE_SYNC_MS;
		if (pid < 0)
			x->record.flags |= EXE_END_SYNC_LATE;
	}
	return (x->record.flags & (EXE_END_SYNCED | EXE_END_SYNC_LATE)) != 0;
}

int
exe_run_end(struct exe *x)
{
	struct exe_record *rec = &x->record;

	if (rec->state != EXE_ENDED) {
		if (sync_volumes(x) == 0)
			return 0;
		drain_logs(x);
		if (was_oom_killed(x))
			rec->flags |= EXE_END_OOM;
		rec->ended_boot_ns = clock_boot_ns();
		rec->ended_real_ns = (uint64_t)clock_real_ns();
		rec->state = EXE_ENDED;
		CRASH_POINT(EXE_BEFORE_EXIT_RECORD);
		x->record_lost = exe_record_write(x) < 0;
		CRASH_POINT(EXE_AFTER_EXIT_RECORD);
	}
	/* If no peer is connected, the record must be synced to disk. A session has no record. */
	if (x->session)
		return exe_peers_tell_exited(x), 1;
	if (exe_peers_tell_exited(x) == 0 && fdatasync(EXE_FD_RECORD) < 0)
		x->record_lost = true;
	else if (x->record_lost && exe_record_write(x) == 0)
		x->record_lost = false;
	return !x->record_lost;
}
