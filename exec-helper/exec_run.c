// SPDX-License-Identifier: Apache-2.0
/* exec_run.c: makes and reaps the objects of a run: cgroup, record, socket. Runs in: exec-helper.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/crash.h"
#include "common/exe_record.h"
#include "common/fd.h"
#include "exec-helper/exec.h"
#include "proto/container_ids.h"

#define BACKLOG      8
#define REAP_WAIT_MS 20

int
exec_run_place(const struct exec_state *s, const struct exec_run *run, int tree)
{
	bool in_v2 = s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPUSET);

	if (tree == CGROUP_CPUSET)
		return run->cores && !in_v2 ? s->cgroup.tasks[tree] : -1;
	return s->cgroup.tasks[tree == CGROUP_V2 && run->cores && in_v2 ? CGROUP_CPUSET : tree];
}

static int
make_cgroups(struct exec_state *s, struct exec_run *run, struct err *e)
{
	for (int t = 0; t < CGROUP_TREES; t++) {
		int dir = exec_run_place(s, run, t);

		if (dir < 0)
			continue;
		if (mkdirat(dir, run->name, 0755) < 0) {
			/* The first cgroup decides: mkdir succeeds for only one request. */
			if (errno == EEXIST && t == CGROUP_V2)
				return 0;
			if (errno != EEXIST)
				return err_set(e, -errno, "make cgroup %s", run->name);
		}
		run->cgroup[t] = openat(dir, run->name, O_PATH | O_DIRECTORY | O_CLOEXEC);
		if (run->cgroup[t] < 0)
			return err_set(e, -errno, "open cgroup %s", run->name);
	}
	return 1;
}

static uint32_t
find_range(const struct exe_setup *setup)
{
	if (!driver_has_containers(setup->driver) || setup->privileged)
		return 0;
	return setup->host_ids ? CONTAINER_RANGE_MACHINE
			       : (setup->user.uid - CONTAINER_ID_FIRST) / CONTAINER_IDS;
}

static int
make_record(struct exec_state *s, struct exec_run *run, struct err *e)
{
	struct exe_record rec = {
		.magic = EXE_RECORD_MAGIC,
		.version = EXE_RECORD_VERSION,
		.size = EXE_RECORD_SIZE,
		.state = EXE_SETTING_UP,
		.driver = s->setup.driver,
		.id_range = find_range(&s->setup),
	};
	char name[ID_HEX_SIZE + 4];

	_Static_assert(sizeof rec.boot_id >= BOOT_ID_SIZE, "a boot id fits");
	memcpy(rec.run, s->setup.run, sizeof rec.run);
	memcpy(rec.alloc, s->setup.alloc, sizeof rec.alloc);
	memcpy(rec.boot_id, s->boot_id, BOOT_ID_SIZE);
	rec.sum = exe_record_sum(&rec);
	(void)snprintf(name, sizeof name, "%s.rec", run->name);
	/* The directory's set-group-id bit gives it group drover. */
	run->record =
	    openat(s->records, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0640);
	if (run->record < 0)
		return err_set(e, -errno, "make the record of run %s", run->name);
	/* From here on the record belongs to this start and is removed with it. */
	if (pwrite(run->record, &rec, sizeof rec, 0) != (ssize_t)sizeof rec)
		return err_set(e, -EIO, "write the record of run %s", run->name);
	return 0;
}

static int
make_socket(struct exec_state *s, struct exec_run *run, struct err *e)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	run->listen = fd;
	(void)snprintf(
	    addr.sun_path, sizeof addr.sun_path, "/proc/self/fd/%d/%s.sock", s->sockets, run->name);
	/* The mode of an unbound socket becomes the mode of its file (unix(7)); the directory's
	 * set-group-id bit gives it group drover. */
	if (fd < 0 || fchmod(fd, 0660) < 0 || bind(fd, (struct sockaddr *)&addr, sizeof addr) < 0 ||
	    listen(fd, BACKLOG) < 0)
		return err_set(e, -errno, "make the socket of run %s", run->name);
	return 0;
}

int
exec_run_make(struct exec_state *s, struct exec_run *run, struct err *e)
{
	int r = make_cgroups(s, run, e);

	if (r == 0)
		return 0;
	CRASH_POINT(EXEC_AFTER_CGROUP);
	if (r > 0)
		r = make_record(s, run, e);
	CRASH_POINT(EXEC_AFTER_RECORD);
	if (r >= 0)
		r = make_socket(s, run, e);
	CRASH_POINT(EXEC_AFTER_BIND);
	if (r < 0)
		exec_run_undo(s, run);
	return r < 0 ? r : 1;
}

void
exec_run_done(struct exec_run *run)
{
	for (int t = 0; t < CGROUP_TREES; t++)
		close_p(&run->cgroup[t]);
	close_p(&run->setup);
	close_p(&run->listen);
	close_p(&run->record);
	close_p(&run->logs);
	close_p(&run->lease);
	close_p(&run->task);
	close_p(&run->network);
}

/* The cgroup is removed first, because without it nothing of the run can start any more. */
static int
remove_cgroups(struct exec_state *s, const char *name, struct err *e)
{
	for (int t = 0; t < CGROUP_TREES; t++) {
		int r = s->cgroup.tasks[t] < 0 ? 0 : cgroup_rmdir(s->cgroup.tasks[t], name);

		if (r < 0)
			return err_set(e, r, "remove cgroup %s", name);
	}
	return 0;
}

static int
remove_files(struct exec_state *s, const char *name, struct err *e)
{
	char file[ID_HEX_SIZE + 8];

	CRASH_POINT(EXEC_REAP_AFTER_CGROUP);
	(void)snprintf(file, sizeof file, "%s.sock", name);
	if (unlinkat(s->sockets, file, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the socket of run %s", name);
	CRASH_POINT(EXEC_REAP_AFTER_SOCKET);
	(void)snprintf(file, sizeof file, "%s.rec", name);
	if (unlinkat(s->records, file, 0) < 0 && errno != ENOENT)
		return err_set(e, -errno, "remove the record of run %s", name);
	return 0;
}

void
exec_run_undo(struct exec_state *s, struct exec_run *run)
{
	/* A record that existed before is not removed. */
	bool made_files = run->record >= 0;

	exec_run_done(run);
	if (remove_cgroups(s, run->name, NULL) == 0 && made_files)
		(void)remove_files(s, run->name, NULL);
}

static int
open_v2(struct exec_state *s, const char *name)
{
	const int flags = O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
	int dir = openat(s->cgroup.tasks[CGROUP_V2], name, flags);

	if (dir < 0 && errno == ENOENT && s->cgroup.in_v2 & CGROUP_BIT(CGROUP_CPUSET))
		dir = openat(s->cgroup.tasks[CGROUP_CPUSET], name, flags);
	return dir < 0 ? -errno : dir;
}

/* Returns 1 if processes were killed, 0 if there were none, -EAGAIN if they have not ended yet. A
 * process may hang in the kernel for ever, so this does not wait; the supervisor asks again. */
static int
kill_run(struct exec_state *s, const char *name, struct err *e)
{
	cleanup_close int dir = open_v2(s, name);
	int r;

	if (dir < 0)
		return dir == -ENOENT ? 0 : err_set(e, dir, "open cgroup %s", name);
	r = cgroup_is_populated(dir);
	if (r <= 0)
		return r < 0 ? err_set(e, r, "check whether cgroup %s has processes", name) : 0;
	if ((r = cgroup_kill(dir)) < 0)
		return err_set(e, r, "kill the processes in cgroup %s", name);
	r = cgroup_wait_empty(dir, REAP_WAIT_MS);
	return r < 0 ? err_say(e, -EAGAIN, "run %s still has processes after it was killed", name)
		     : 1;
}

int
exec_on_run_reap(struct exec_state *s, const struct exec_run_reap_req *req,
    struct exec_run_reap_rep *rep, int *ret_fd, struct err *e)
{
	char name[ID_HEX_SIZE];
	int r;

	(void)ret_fd;
	if (id_is_zero(&req->run))
		return err_say(e, -EINVAL, "reap: the run's id is missing");
	id_to_hex(&req->run, name);
	r = kill_run(s, name, e);
	if (r < 0)
		return r;
	rep->killed = r;
	r = remove_cgroups(s, name, e);
	return r < 0 ? r : remove_files(s, name, e);
}
