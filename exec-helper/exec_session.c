// SPDX-License-Identifier: Apache-2.0
/* exec_session.c: starts a second executor for a command or a file inside a running task. The run's
 * record names the task's process, and a pidfd proves it. Runs in: exec-helper. Asked by:
 * supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/pidfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/exe_record.h"
#include "common/fd.h"
#include "common/pid.h"
#include "exec-helper/exec.h"
#include "proto/container_ids.h"

#define PLACES 16 /* sessions of one run at a time; the first is for files */

static int
read_record(struct exec_state *s, const struct exec_run *run, struct exe_record *ret)
{
	char name[ID_HEX_SIZE + 4];
	uint8_t buf[EXE_RECORD_SIZE];
	cleanup_close int fd = -1;
	ssize_t n;

	(void)snprintf(name, sizeof name, "%s.rec", run->name);
	fd = fd_open_beneath(s->records, name, O_RDONLY, 0);
	n = fd < 0 ? fd : fd_read_full(fd, buf, sizeof buf);
	return n < 0 ? (int)n : exe_record_parse(buf, (size_t)n, s->setup.run, ret);
}

/* Opens the pidfd first: if the process with this pid then still has the task's start time, the
 * pidfd refers to it. Its cgroup, which only root can change, shows that it belongs to this run. */
static int
open_task(struct exec_state *s, struct exec_run *run, struct err *e)
{
	struct exe_record rec;
	int r = read_record(s, run, &rec);

	if (r < 0)
		return err_set(e, r, "read the record of run %s", run->name);
	if (memcmp(rec.alloc, s->setup.alloc, sizeof rec.alloc) != 0)
		return err_say(e, -EPERM, "the run is another allocation's");
	if (rec.driver && rec.driver != s->setup.driver)
		return err_say(e, -EPERM, "the run is another driver's");
	if (driver_has_containers(rec.driver) && (rec.id_range == 0) != s->setup.privileged)
		return err_say(
		    e, -EPERM, "a session must be privileged if its container is, and only then");
	if ((rec.id_range == CONTAINER_RANGE_MACHINE) != s->setup.host_ids)
		return err_say(e, -EPERM,
		    "a session must have the machine's ids if its container has them, and only "
		    "then");
	if (rec.state != EXE_RUNNING || strcmp(rec.boot_id, s->boot_id) != 0)
		return err_say(e, -ESRCH, "task \"%s\" is not running.", s->setup.keep.task);
	run->task = pidfd_open((pid_t)rec.task_pid, 0);
	if (run->task < 0 || pid_start_ticks(EXE_FD_PROC, rec.task_pid) != rec.task_start_ticks ||
	    !cgroup_has_pid(s->args->cgroup, run->name, (pid_t)rec.task_pid))
		return err_say(e, -ESRCH, "task \"%s\" is not running.", s->setup.keep.task);
	return 0;
}

/* Makes a cgroup below the run's, by which the session can be killed. A locked cgroup belongs to an
 * executor that has not yet cloned into it; the empty cgroup of an ended session is removed and
 * made again. */
static int
make_place(struct exec_state *s, struct exec_run *run, int tasks, int place)
{
	cleanup_close int old = -1, dir = -1;
	char name[16];

	(void)snprintf(name, sizeof name, "session-%d", place);
	old = openat(tasks, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (old >= 0 && (flock(old, LOCK_EX | LOCK_NB) < 0 || cgroup_rmdir(tasks, name) < 0))
		return -EBUSY;
	/* Only root may open it, so nobody else can take the lock. */
	if (mkdirat(tasks, name, 0700) < 0)
		return -errno;
	dir = openat(tasks, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (dir < 0 || flock(dir, LOCK_EX | LOCK_NB) < 0)
		return -errno;
	run->cgroup[CGROUP_V2] = steal_fd(&dir);
	return 0;
}

static int
open_cgroups(struct exec_state *s, struct exec_run *run, struct err *e)
{
	int number = s->setup.session == EXE_SESSION_FILE ? 0 : 1, r = -EBUSY;
	cleanup_close int tasks = -1;

	for (int t = 0; t < CGROUP_TREES; t++) {
		int place = exec_run_place(s, run, t), dir = -1;

		if (place >= 0)
			dir = openat(place, run->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (place >= 0 && dir < 0)
			return err_set(e, -errno, "open cgroup %s", run->name);
		*(t == CGROUP_V2 ? &tasks : &run->cgroup[t]) = dir;
	}
	for (; number < PLACES && r < 0; number++)
		r = make_place(s, run, tasks, number);
	return r < 0 ? err_set(e, r, "task \"%s\" has %d sessions already", s->setup.keep.task,
			   PLACES - 1)
		     : 0;
}

static int
start_session(struct exec_state *s, struct exec_run *run, int *ret_fd, struct err *e)
{
	int pair[2], r = open_task(s, run, e);

	if (r < 0 || (r = open_cgroups(s, run, e)) < 0 ||
	    (r = exec_open_for_executor(s, run, e)) < 0)
		return r;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_set(e, -errno, "make the socket of a session");
	run->listen = pair[0];
	*ret_fd = pair[1];
	r = exec_spawn_executor(s, run);
	return r < 0 ? err_set(e, r, "start the executor of a session") : 0;
}

int
exec_on_session_start(struct exec_state *s, const struct exec_session_start_req *req,
    struct exec_session_start_rep *rep, int *ret_fd, struct err *e)
{
	struct exec_run run;
	int r;

	_Static_assert((int)EXEC_SESSION_COMMAND == EXE_SESSION_COMMAND &&
			   (int)EXEC_SESSION_FILE == EXE_SESSION_FILE,
	    "one numbering");
	(void)rep;
	/* The session's executor checks by itself which namespaces the task is in. */
	if (req->start.lease_ms > 0 || req->start.pid_mode || req->start.ipc_mode ||
	    req->kind == EXEC_SESSION_NONE)
		return err_say(e, -EINVAL, "session: not of a kind that is known");
	r = exec_policy_check(s, &req->start, NULL, 0, &s->setup, &run, e);
	if (r < 0)
		return r;
	s->setup.session = (uint32_t)req->kind;
	run.spec = s->spec;
	r = start_session(s, &run, ret_fd, e);
	exec_run_done(&run);
	return r;
}
