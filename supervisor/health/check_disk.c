// SPDX-License-Identifier: Apache-2.0
/*
 * check_disk.c: checks the disk of the data directory. A child of file-helper asks it first,
 * because a file system that hangs would stop the work loop. Runs in: supervisor.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/health/check_memory.h"

#define NAME           "disk"
#define MIB            (1024.0 * 1024)
#define LEAST_BYTES    (16u << 20) /* for the record, the logs and the secrets of a few tasks */
#define LEAST_INODES   64
#define SCARCE_PERCENT 2
#define ANSWER_MS      10000 /* the child has 4 s */
#define POLL_USEC      20000

/* Newer kernels do not mark a file system as read-only that they stopped writing to after an error,
 * so a file without a name is made. The directory of state.db is the one where this process may. */
static bool
refuses_writes(struct sup *sup)
{
	cleanup_free char *dir = mem_printf("%s/state", sup->args.data_dir);
	cleanup_close int fd = -1;
	struct stat disk, state;

	if (fstat(sup->log_dir_fd, &disk) < 0 || stat(dir, &state) < 0 ||
	    disk.st_dev != state.st_dev)
		return false;
	fd = open(dir, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
	return fd < 0 && errno == EROFS;
}

static void
judge_space(struct check *c, const char *dir, const struct statvfs *fs)
{
	uint64_t bytes = (uint64_t)fs->f_bavail * fs->f_frsize;
	bool counts_inodes = fs->f_files > 0;

	if (fs->f_flag & ST_RDONLY)
		check_end(c, HEALTH_FAILED, "the disk of %s is mounted read-only", dir);
	else if (bytes < LEAST_BYTES)
		check_end(c, HEALTH_FAILED, "the disk of %s is full: %.1f MiB are free", dir,
		    (double)bytes / MIB);
	else if (counts_inodes && fs->f_favail < LEAST_INODES)
		check_end(c, HEALTH_FAILED,
		    "the disk of %s has no room for files: %llu inodes are free", dir,
		    (unsigned long long)fs->f_favail);
	else if (fs->f_bavail < fs->f_blocks / 100 * SCARCE_PERCENT)
		check_end(c, HEALTH_DEGRADED, "the disk of %s is nearly full: %.0f MiB are free",
		    dir, (double)bytes / MIB);
	else if (counts_inodes && fs->f_favail < fs->f_files / 100 * SCARCE_PERCENT)
		check_end(c, HEALTH_DEGRADED,
		    "the disk of %s has little room for files: %llu inodes are free", dir,
		    (unsigned long long)fs->f_favail);
	else
		check_end(c, HEALTH_OK, NULL);
}

/* For a file system that answers. */
static void
judge_disk(struct sup *sup)
{
	struct check *c = &check_memory(sup)->disk.check;
	const char *dir = sup->args.data_dir;
	struct statvfs fs;

	if (refuses_writes(sup))
		check_end(c, HEALTH_FAILED, "the disk of %s can only be read", dir);
	else if (fstatvfs(sup->log_dir_fd, &fs) < 0)
		check_end(c, HEALTH_FAILED, "stat the disk of %s: %s", dir, strerror(errno));
	else
		judge_space(c, dir, &fs);
}

static void
stop_asking(struct sup *sup)
{
	struct disk_check *d = &check_memory(sup)->disk;

	sup_timer_cancel(&d->poll);
	child_call_cancel(sup, d->call);
	d->call = 0;
}

static void
on_late(struct check *c)
{
	stop_asking(c->sup);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct disk_check *d = &check_memory(sup)->disk;
	bool hangs = r == -ETIMEDOUT || r == -EBUSY; /* so many children hang already */

	d->call = 0;
	stop_asking(sup);
	if (hangs)
		check_end(&d->check, HEALTH_HUNG, "the disk of %s does not answer: %s",
		    sup->args.data_dir, e->msg);
	else
		judge_disk(sup);
}

/* The question is not sent while commits fail; but then the disk answers, with an error. */
static void
poll_turn(void *arg)
{
	struct sup *sup = arg;

	if (turn_is_stuck(sup, NULL)) {
		stop_asking(sup);
		judge_disk(sup);
		return;
	}
	sup_timer_set(
	    sup, &check_memory(sup)->disk.poll, CLOCK_MONOTONIC, POLL_USEC, poll_turn, sup);
}

void
check_disk(struct sup *sup)
{
	struct disk_check *d = &check_memory(sup)->disk;
	const struct file_disk_ask_req req = {};

	check_begin(&d->check, sup, NAME, on_late);
	if (!check_is_well(sup, "helper/file-helper")) {
		judge_disk(sup);
		return;
	}
	check_step(&d->check, "wait for its file system's answer", ANSWER_MS);
	d->call = file_call_disk_ask(sup, &req, on_answer, NULL);
	poll_turn(sup);
}

bool
check_disk_hangs(struct sup *sup)
{
	const struct component *c = component_find(health_components(sup), NAME);

	return c && c->state == HEALTH_HUNG;
}
