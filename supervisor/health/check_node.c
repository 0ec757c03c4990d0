// SPDX-License-Identifier: Apache-2.0
/* check_node.c: checks of the disk, the clock and state.db. Runs in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/store.h"
#include "supervisor/health/check_memory.h"

#define MIB             (1024.0 * 1024)
#define LEAST_BYTES     (16u << 20) /* for the record, the logs and the secrets of a few tasks */
#define LEAST_INODES    64
#define SCARCE_PERCENT  2
#define STATE_MS        5000
#define STATE_POLL_USEC 20000
#define STATE_KEY       "health_check"

/* --- the disk of the data directory --- */

static void
judge_disk(struct sup *sup, const struct statvfs *fs)
{
	const char *dir = sup->args.data_dir;
	uint64_t bytes = (uint64_t)fs->f_bavail * fs->f_frsize;
	bool counts_inodes = fs->f_files > 0;

	if (fs->f_flag & ST_RDONLY)
		check_report(
		    sup, "disk", HEALTH_FAILED, "the disk of %s is mounted read-only", dir);
	else if (bytes < LEAST_BYTES)
		check_report(sup, "disk", HEALTH_FAILED,
		    "the disk of %s is full: %.1f MiB are free", dir, (double)bytes / MIB);
	else if (counts_inodes && fs->f_favail < LEAST_INODES)
		check_report(sup, "disk", HEALTH_FAILED,
		    "the disk of %s has no room for files: %llu inodes are free", dir,
		    (unsigned long long)fs->f_favail);
	else if (fs->f_bavail < fs->f_blocks / 100 * SCARCE_PERCENT)
		check_report(sup, "disk", HEALTH_DEGRADED,
		    "the disk of %s is nearly full: %.0f MiB are free", dir, (double)bytes / MIB);
	else if (counts_inodes && fs->f_favail < fs->f_files / 100 * SCARCE_PERCENT)
		check_report(sup, "disk", HEALTH_DEGRADED,
		    "the disk of %s has little room for files: %llu inodes are free", dir,
		    (unsigned long long)fs->f_favail);
	else
		check_report(sup, "disk", HEALTH_OK, NULL);
}

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

void
check_disk(struct sup *sup)
{
	struct statvfs fs;

	if (refuses_writes(sup))
		check_report(sup, "disk", HEALTH_FAILED, "the disk of %s can only be read",
		    sup->args.data_dir);
	else if (fstatvfs(sup->log_dir_fd, &fs) < 0)
		check_report(sup, "disk", HEALTH_FAILED, "stat the disk of %s: %s",
		    sup->args.data_dir, strerror(errno));
	else
		judge_disk(sup, &fs);
}

/* --- the clock --- */

void
check_clock(struct sup *sup)
{
	char sentence[128] = "";
	enum health_state state = clock_step_judge(&check_memory(sup)->clock, clock_real_ns(),
	    (int64_t)clock_boot_ns(), sentence, sizeof sentence);

	check_report(sup, "clock", state, "%s", sentence);
}

/* --- state.db: a row is written, synced and read back --- */

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	cleanup_free char *text = mem_printf("%" PRId64, check_memory(sup)->row_value);

	return store_meta_put(sup->store, STATE_KEY, text, e);
}

static void
end_state(struct sup *sup, enum health_state state, const char *why)
{
	struct check_memory *m = check_memory(sup);

	sup_timer_cancel(&m->row_poll);
	check_end(&m->row_check, state, why ? "%s" : NULL, why);
}

static void
on_row_written(struct sup *sup, struct dirty *d)
{
	struct check_memory *m = check_memory(sup);
	cleanup_free char *text = NULL;
	struct err e = { 0 };

	if (!m->row_check.name)
		return; /* the check has ended meanwhile */
	if (store_meta_get(sup->store, STATE_KEY, &text, &e) < 0)
		end_state(sup, HEALTH_FAILED, e.msg);
	else if (strtoll(text, NULL, 10) != m->row_value)
		end_state(sup, HEALTH_FAILED, "state.db does not return what was written");
	else
		end_state(sup, HEALTH_OK, NULL);
}

/* No commit: on_row_written() is not called while state.db cannot be written. */
static void
poll_row(void *arg)
{
	struct sup *sup = arg;
	const char *why;

	if (turn_is_stuck(sup, &why))
		end_state(sup, check_is_well(sup, "disk") ? HEALTH_FAILED : HEALTH_UNKNOWN, why);
	else
		sup_timer_set(sup, &check_memory(sup)->row_poll, CLOCK_MONOTONIC, STATE_POLL_USEC,
		    poll_row, sup);
}

static void
on_state_late(struct check *c)
{
	sup_timer_cancel(&check_memory(c->sup)->row_poll);
}

void
check_state(struct sup *sup)
{
	struct check_memory *m = check_memory(sup);

	check_begin(&m->row_check, sup, "state", on_state_late);
	check_step(&m->row_check, "write a row of state.db", STATE_MS);
	m->row_value = clock_real_ns();
	turn_write(sup, &m->row);
	turn_durable(sup);
	poll_row(sup);
}

void
check_memory_begin(struct sup *sup)
{
	struct check_memory *m = check_memory(sup);

	clock_step_begin(&m->clock, clock_real_ns(), (int64_t)clock_boot_ns());
	m->row = (struct dirty){
		.write = write_row, .written = on_row_written, .point = CRASH_ROW_PROBE_VALUE
	};
}

void
check_memory_end(struct sup *sup)
{
	turn_forget_write(sup, &check_memory(sup)->row);
	check_hung_volumes_forget(sup);
	check_drivers_free(sup);
}
