// SPDX-License-Identifier: Apache-2.0
/*
 * test_local_periodic.c: launches when the clock is set: forward, back, over a time in the past,
 * and at the moment when the timer is armed. The test replaces the clock and its timer, as
 * timerfd_settime(2) has them, and the sources of jobs and rows.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <systemd/sd-event.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "common/clock.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/server/drive/local_periodic.h"
#include "supervisor/server/drive/local_register.h"
#include "supervisor/server/job/local_evals.h"
#include "supervisor/server/job/local_family.h"
#include "supervisor/server/job/local_marks.h"
#include "supervisor/server/place/local_reconcile.h"
#include "supervisor/core/store.h"
#include "tests/unit/unit.h"
#include "model/job_stub.h"

#define HOUR  3600
#define BEGIN (1000000 * (int64_t)HOUR) /* a full hour */

/* --- the clock and its timer --- */

static struct {
	int fd;
	int64_t now, at; /* at is 0 when the timer is not armed */
	bool was_set;    /* and nobody has been notified yet */
	int64_t set_at_next_look;
} fake;

static void
ring(void)
{
	uint64_t one = 1;

	ck_assert_int_eq(write(fake.fd, &one, sizeof one), sizeof one);
}

static void
silence(void)
{
	uint64_t n;

	(void)syscall(SYS_read, fake.fd, &n, sizeof n);
}

static void
pass_until(int64_t now)
{
	fake.now = now;
	if (fake.at && fake.at <= now)
		ring();
}

static void
set_clock(int64_t now)
{
	fake.now = now;
	fake.was_set = true;
	if (fake.fd > 0)
		ring();
}

int64_t
clock_real_ns(void)
{
	int64_t now = fake.now;

	if (fake.set_at_next_look) {
		set_clock(fake.set_at_next_look);
		fake.set_at_next_look = 0;
	}
	return now * 1000000000;
}

int
timerfd_create(clockid_t clock, int flags)
{
	ck_assert_int_eq(clock, CLOCK_REALTIME);
	fake.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	return fake.fd;
}

int
timerfd_settime(int fd, int flags, const struct itimerspec *new, struct itimerspec *old)
{
	ck_assert_int_eq(fd, fake.fd);
	ck_assert_int_eq(flags, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
	silence();
	fake.at = new->it_value.tv_sec;
	if (fake.at && fake.at <= fake.now)
		ring();
	if (!fake.at || !fake.was_set)
		return 0;
	fake.was_set = false;
	errno = ECANCELED;
	return -1;
}

ssize_t
read(int fd, void *buf, size_t size)
{
	if (fd != fake.fd || !fake.was_set)
		return syscall(SYS_read, fd, buf, size);
	silence();
	fake.was_set = false;
	errno = ECANCELED;
	return -1;
}

/* --- jobs and rows --- */

static struct local local;
static struct local_job parent, known_child;
static int64_t made[8], again[8];
static size_t n_made, n_again;
static bool is_loaded; /* the job was read from state.db */
static unsigned n_running;

/* Returns the time in "p/periodic-<seconds>". */
static int64_t
time_of(const char *id)
{
	return strtoll(strchr(id, '-') + 1, NULL, 10);
}

struct local_job *
local_job_find_any(struct local *l, const char *namespace, const char *id)
{
	for (size_t i = 0; i < n_made; i++)
		if (made[i] == time_of(id)) {
			again[n_again++] = made[i];
			return &known_child;
		}
	return NULL;
}

struct local_key **
local_jobs_sorted(const struct local *l, size_t *ret_n)
{
	struct local_key **list = mem_zeroed(1, sizeof(struct local_key *));

	list[0] = &parent.key;
	*ret_n = is_loaded;
	return list;
}

void
local_launch_key(const struct job *job, char ret[LOCAL_LAUNCH_KEY_SIZE])
{
	ret[0] = '\0';
}

void
local_job_register(struct local *l, struct job *job, const struct job_submission *submission,
    const char *trigger, struct local_job **ret, struct local_eval **ret_ev)
{
	ck_assert_uint_lt(n_made, ELEMENTSOF(made));
	ck_assert_ptr_null(job->periodic);
	made[n_made++] = time_of(job->id);
	job_done(job);
	job_init(job);
	*ret = &known_child;
}

struct local_eval *
local_eval_new(struct local *l, struct local_job *j, const char *trigger)
{
	static struct local_eval ev;

	return &ev;
}

void
local_reconcile_job(struct local *l, struct local_job *j, struct local_eval *ev, bool first)
{
	ck_assert_ptr_eq(j, &known_child);
}

int
local_family_check(struct local *l, const struct job *job, struct err *e)
{
	return 0;
}

void
local_family_count(struct local *l, const struct job *job, struct job_children *ret)
{
	*ret = (struct job_children){ .running = n_running };
}

void
local_family_collect(struct local *l, int64_t now_s)
{
}

int64_t
local_family_collect_at(const struct local *l)
{
	return 0;
}

int
store_meta_get(struct store *s, const char *key, char **ret, struct err *e)
{
	return -ENOENT;
}

int
store_meta_put(struct store *s, const char *key, const char *value, struct err *e)
{
	return 0;
}

/* The pass follows immediately. */
void
local_mark_timer(struct local *l)
{
	local_periodic_run(l);
}

void
turn_write(struct sup *sup, struct dirty *d)
{
}

void
turn_durable(struct sup *sup)
{
}

void
turn_forget_write(struct sup *sup, struct dirty *d)
{
}

/* --- the tests: one job, each full hour --- */

static struct sup sup;
static struct job_ref ref;
static struct local_version version;

static void
begin_job(void)
{
	memset(&fake, 0, sizeof fake);
	memset(&local, 0, sizeof local);
	memset(&parent, 0, sizeof parent);
	n_made = n_again = n_running = 0;
	is_loaded = false;
	ck_assert_int_ge(sd_event_new(&sup.event), 0);
	job_init(&ref.job);
	ref.job.type = JOB_BATCH;
	str_set(&ref.job.id, "p");
	str_set(&ref.job.namespace, "default");
	ref.job.periodic = periodic_config_new();
	str_set(&ref.job.periodic->spec, "0 * * * *");
	version.ref = &ref;
	SLIST_INSERT_HEAD(&parent.versions, &version, older);
	local.base.sup = &sup;
	local_periodic_init(&local);
}

/* Begins one second after BEGIN. */
static void
begin(void)
{
	struct err e = { 0 };

	begin_job();
	fake.now = BEGIN + 1;
	ck_assert_int_eq(local_periodic_start(&local, &e), 0);
	local_periodic_update(&local, &parent);
	ck_assert_int_eq(parent.timed, true);
	ck_assert_int_eq(fake.at, BEGIN + HOUR);
}

static void
turn(void)
{
	while (sd_event_run(sup.event, 0) > 0)
		continue;
}

static void
end(void)
{
	local_periodic_free(&local);
	job_done(&ref.job);
	sup.event = sd_event_unref(sup.event);
}

START_TEST(time_goes_on)
{
	begin();
	pass_until(BEGIN + HOUR);
	turn();
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(made[0], BEGIN + HOUR);
	ck_assert_int_eq(fake.at, BEGIN + 2 * HOUR);
	end();
}
END_TEST

START_TEST(forward_over_several_launches_one)
{
	begin();
	set_clock(BEGIN + 5 * HOUR + 7);
	turn();
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(made[0], BEGIN + HOUR);
	ck_assert_int_eq(fake.at, BEGIN + 6 * HOUR);
	end();
}
END_TEST

START_TEST(back_has_an_earlier_time)
{
	begin();
	set_clock(BEGIN - 3 * HOUR + 5);
	turn();
	ck_assert_uint_eq(n_made, 0);
	ck_assert_int_eq(fake.at, BEGIN - 2 * HOUR);
	end();
}
END_TEST

START_TEST(back_in_the_moment_in_which_it_is_armed)
{
	begin();
	set_clock(BEGIN - 3 * HOUR + 5);
	local_periodic_arm(&local); /* for example for another job, before the loop's turn */
	ck_assert_int_eq(fake.at, BEGIN - 2 * HOUR);
	turn();
	ck_assert_uint_eq(n_made, 0);
	ck_assert_int_eq(fake.at, BEGIN - 2 * HOUR);
	end();
}
END_TEST

START_TEST(back_between_the_look_at_the_clock_and_the_arming)
{
	begin();
	fake.now = BEGIN + HOUR;
	fake.set_at_next_look = BEGIN - 3 * HOUR + 5;
	ring();
	turn();
	/* The time had come when the clock was read. */
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(fake.at, BEGIN - 2 * HOUR);
	end();
}
END_TEST

START_TEST(forward_in_the_moment_in_which_it_is_armed)
{
	begin();
	set_clock(BEGIN + 2 * HOUR + 5);
	local_periodic_arm(&local);
	turn();
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(fake.at, BEGIN + 3 * HOUR);
	end();
}
END_TEST

START_TEST(a_second_that_comes_again_is_the_same_child)
{
	begin();
	pass_until(BEGIN + HOUR);
	turn();
	set_clock(BEGIN + HOUR - 10);
	turn();
	ck_assert_int_eq(fake.at, BEGIN + HOUR);
	pass_until(BEGIN + HOUR);
	turn();
	ck_assert_uint_eq(n_made, 1);
	ck_assert_uint_eq(n_again, 1);
	ck_assert_int_eq(fake.at, BEGIN + 2 * HOUR);
	end();
}
END_TEST

START_TEST(without_a_job_the_clock_is_nothing)
{
	begin();
	local_periodic_forget(&local, &parent);
	local_periodic_arm(&local);
	ck_assert_int_eq(fake.at, 0);
	set_clock(BEGIN - HOUR);
	turn();
	ck_assert_int_eq(fake.at, 0);
	local_periodic_update(&local, &parent);
	ck_assert_int_eq(fake.at, BEGIN);
	end();
}
END_TEST

/* Launches that were missed while the agent did not run are made up by one, at its start. */
START_TEST(missed_launches_are_made_up_by_one)
{
	struct err e = { 0 };

	begin_job();
	is_loaded = true;
	parent.checked_s = BEGIN - 5 * HOUR;
	fake.now = BEGIN + 7;
	ck_assert_int_eq(local_periodic_start(&local, &e), 0);
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(made[0], BEGIN + 7);
	ck_assert_int_eq(parent.checked_s, BEGIN + 7);
	ck_assert_int_eq(fake.at, BEGIN + HOUR);
	end();
}
END_TEST

START_TEST(nothing_was_missed)
{
	struct err e = { 0 };

	begin_job();
	is_loaded = true;
	parent.checked_s = BEGIN + 1;
	fake.now = BEGIN + 7;
	ck_assert_int_eq(local_periodic_start(&local, &e), 0);
	ck_assert_uint_eq(n_made, 0);
	ck_assert_int_eq(fake.at, BEGIN + HOUR);
	end();
}
END_TEST

/* With prohibit_overlap a launch is skipped while a child runs, and not made up later. */
START_TEST(an_overlapping_launch_is_skipped)
{
	begin();
	ref.job.periodic->prohibit_overlap = OPT_TRUE;
	n_running = 1;
	pass_until(BEGIN + HOUR);
	turn();
	ck_assert_uint_eq(n_made, 0);
	ck_assert_int_eq(fake.at, BEGIN + 2 * HOUR);
	n_running = 0;
	pass_until(BEGIN + 2 * HOUR);
	turn();
	ck_assert_uint_eq(n_made, 1);
	ck_assert_int_eq(made[0], BEGIN + 2 * HOUR);
	end();
}
END_TEST

/* DST skips a launch in spring, and in autumn there are two of them. */
START_TEST(a_job_in_a_time_zone)
{
	struct err e = { 0 };
	const int64_t spring = 1774746000,
		      autumn = 1792890000; /* 01:00 UTC: 29 March, 25 October */

	begin_job();
	is_loaded = true;
	str_set(&ref.job.periodic->spec, "30 2 * * *");
	str_set(&ref.job.periodic->time_zone, "Europe/Berlin");
	fake.now = parent.checked_s = spring - 2 * HOUR;
	ck_assert_int_eq(local_periodic_start(&local, &e), 0);
	/* 02:30 does not exist on that day: the next one is at 00:30 UTC of the next. */
	ck_assert_int_eq(fake.at, spring + 23 * HOUR + HOUR / 2);
	local_periodic_forget(&local, &parent);
	fake.now = autumn - 2 * HOUR;
	local_periodic_update(&local, &parent);
	ck_assert_int_eq(fake.at, autumn - HOUR / 2);
	pass_until(autumn - HOUR / 2);
	turn();
	ck_assert_int_eq(fake.at, autumn + HOUR / 2);
	ck_assert_uint_eq(n_made, 1);
	end();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, time_goes_on);
	tcase_add_test(tc, forward_over_several_launches_one);
	tcase_add_test(tc, back_has_an_earlier_time);
	tcase_add_test(tc, back_in_the_moment_in_which_it_is_armed);
	tcase_add_test(tc, back_between_the_look_at_the_clock_and_the_arming);
	tcase_add_test(tc, forward_in_the_moment_in_which_it_is_armed);
	tcase_add_test(tc, a_second_that_comes_again_is_the_same_child);
	tcase_add_test(tc, without_a_job_the_clock_is_nothing);
	tcase_add_test(tc, missed_launches_are_made_up_by_one);
	tcase_add_test(tc, nothing_was_missed);
	tcase_add_test(tc, an_overlapping_launch_is_skipped);
	tcase_add_test(tc, a_job_in_a_time_zone);
}

int
main(void)
{
	return unit_run("local_periodic", add);
}
