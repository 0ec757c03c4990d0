// SPDX-License-Identifier: Apache-2.0
/* test_cron.c: cron expressions: the times that match, across clock changes, and invalid
 * expressions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "common/cleanup.h"
#include "model/cron.h"
#include "tests/unit/unit.h"

#define BERLIN  "Europe/Berlin"
#define ANGELES "America/Los_Angeles"

/* Parses a time in UTC. */
static int64_t
utc(const char *text)
{
	struct tm tm = { 0 };

	ck_assert_ptr_nonnull(strptime(text, "%Y-%m-%d %H:%M:%S", &tm));
	return (int64_t)timegm(&tm);
}

static int64_t
next(const char *expr, const char *zone, int64_t after)
{
	struct err e = { 0 };
	struct cron c;

	ck_assert_msg(cron_parse(expr, &c, &e) == 0, "%s: %s", expr, e.msg);
	return cron_next(&c, zone, after);
}

static const struct {
	const char *expr, *zone, *after, *next; /* times in UTC; next is NULL if there is none */
} times[] = {
	/* seconds, minutes, hours */
	{ "* * * * * * *", "", "2026-01-01 00:00:00", "2026-01-01 00:00:01" },
	{ "*/5 * * * * * *", "", "2026-12-31 23:59:55", "2027-01-01 00:00:00" },
	{ "7 * * * * * *", "", "2026-12-31 23:59:08", "2027-01-01 00:00:07" },
	{ "* * * * *", "", "2026-01-01 00:00:59", "2026-01-01 00:01:00" },
	{ "* * * * *", "UTC", "2026-01-01 00:01:00", "2026-01-01 00:02:00" },
	{ "*/15 * * * * *", "", "2026-01-01 00:01:00", "2026-01-01 00:15:00" },
	{ "17-43/5 * * * *", "", "2026-01-01 00:30:00", "2026-01-01 00:32:00" },
	{ "17-43/5 * * * *", "", "2026-01-01 00:50:00", "2026-01-01 01:17:00" },
	{ "15-30/4,55 * * * *", "", "2026-01-01 00:27:00", "2026-01-01 00:55:00" },
	{ "50/3 * * * *", "", "2026-01-01 00:53:30", "2026-01-01 00:56:00" },
	{ "5 4 * * *", "", "2026-02-28 04:05:00", "2026-03-01 04:05:00" },
	{ "0 9-17/4 * * *", "", "2026-01-01 10:00:00", "2026-01-01 13:00:00" },
	{ "  30\t6   * * *  ", "", "2026-01-01 06:30:00", "2026-01-02 06:30:00" },
	/* days; if both kinds are given, either suffices */
	{ "0 0 29 2 *", "", "2026-01-01 00:00:00", "2028-02-29 00:00:00" },
	{ "0 0 29 2 *", "", "2096-03-01 00:00:00", NULL },
	{ "0 0 30 2 *", "", "2026-01-01 00:00:00", NULL },
	{ "0 0 31 4,6,9,11 *", "", "2026-01-01 00:00:00", NULL },
	{ "0 0 31 * *", "", "2026-01-31 00:00:00", "2026-03-31 00:00:00" },
	{ "0 0 1 1 * 2030", "", "2026-01-01 00:00:00", "2030-01-01 00:00:00" },
	{ "0 0 1 1 * 1980", "", "2026-01-01 00:00:00", NULL },
	{ "0 0 0 1 1 ? 2026,2028", "", "2026-01-01 00:00:00", "2028-01-01 00:00:00" },
	{ "59 59 23 31 12 ? 2099", "", "2099-12-31 23:59:58", "2099-12-31 23:59:59" },
	{ "59 59 23 31 12 ? 2099", "", "2099-12-31 23:59:59", NULL },
	{ "0 0 * * MON", "", "2026-11-22 12:00:00", "2026-11-23 00:00:00" },
	{ "0 0 * * friday", "", "2026-11-22 12:00:00", "2026-11-27 00:00:00" },
	{ "0 0 * * 7", "", "2026-11-16 12:00:00", "2026-11-22 00:00:00" },
	{ "0 0 * * fri-sun", "", "2026-11-21 12:00:00", "2026-11-22 00:00:00" },
	{ "0 0 * * 5-7/2", "", "2026-11-20 12:00:00", "2026-11-22 00:00:00" },
	{ "0 0 * * 0-0", "", "2026-11-22 12:00:00", "2026-11-29 00:00:00" },
	{ "0 0 * * 7-1", "", "2026-11-22 12:00:00", "2026-11-23 00:00:00" },
	{ "0 0 13 * 5", "", "2026-11-13 12:00:00", "2026-11-20 00:00:00" },
	{ "0 0 13 * ?", "", "2026-11-13 12:00:00", "2026-12-13 00:00:00" },
	{ "0 0 */10 * *", "", "2026-11-22 00:00:00", "2026-12-01 00:00:00" },
	{ "0 0 */10 * *", "", "2026-12-01 00:00:00", "2026-12-11 00:00:00" },
	{ "0 0 1 04 *", "", "2026-11-22 00:00:00", "2027-04-01 00:00:00" },
	{ "0 0 1 Jan,september *", "", "2026-02-01 00:00:00", "2026-09-01 00:00:00" },
	/* last days, working days, the third Wednesday */
	{ "0 0 L * *", "", "2028-02-01 00:00:00", "2028-02-29 00:00:00" },
	{ "0 0 l-2 * *", "", "2026-11-01 00:00:00", "2026-11-28 00:00:00" },
	{ "0 0 LW * *", "", "2026-01-31 00:00:00", "2026-02-27 00:00:00" },
	{ "0 0 LW * *", "", "2026-05-01 00:00:00", "2026-05-29 00:00:00" },
	{ "0 0 15W * *", "", "2026-11-01 00:00:00", "2026-11-16 00:00:00" },
	{ "0 0 14W * *", "", "2026-11-01 00:00:00", "2026-11-13 00:00:00" },
	{ "0 0 1W * *", "", "2026-07-31 12:00:00", "2026-08-03 00:00:00" },
	{ "0 0 31W * *", "", "2026-05-01 00:00:00", "2026-05-29 00:00:00" },
	{ "0 0 * * 5L", "", "2026-11-01 00:00:00", "2026-11-27 00:00:00" },
	{ "0 0 * * friL", "", "2026-11-27 00:00:00", "2026-12-25 00:00:00" },
	{ "0 0 * * 3#3", "", "2026-11-01 00:00:00", "2026-11-18 00:00:00" },
	{ "0 0 * * sat#5", "", "2026-11-01 00:00:00", "2027-01-30 00:00:00" },
	/* shorthands */
	{ "@hourly", "", "2026-11-22 10:00:00", "2026-11-22 11:00:00" },
	{ "@daily", "", "2026-11-22 10:00:00", "2026-11-23 00:00:00" },
	{ "@weekly", "", "2026-11-22 10:00:00", "2026-11-29 00:00:00" },
	{ "@monthly", "", "2026-11-22 10:00:00", "2026-12-01 00:00:00" },
	{ "@yearly", "", "2026-11-22 10:00:00", "2027-01-01 00:00:00" },
	{ "@annually", "", "2026-11-22 10:00:00", "2027-01-01 00:00:00" },
	/* zones */
	{ "0 12 * * *", BERLIN, "2026-01-01 00:00:00", "2026-01-01 11:00:00" },
	{ "0 12 * * *", BERLIN, "2026-07-01 00:00:00", "2026-07-01 10:00:00" },
	{ "0 0 1 1 *", "Pacific/Kiritimati", "2026-06-01 00:00:00", "2026-12-31 10:00:00" },
	{ "30 0 * * *", "Asia/Kathmandu", "2026-06-01 00:00:00", "2026-06-01 18:45:00" },
	/* clocks go forward: 2:30 is skipped on that day, 3:00 follows at once */
	{ "30 2 * * *", BERLIN, "2026-03-28 12:00:00", "2026-03-30 00:30:00" },
	{ "0 3 * * *", BERLIN, "2026-03-28 12:00:00", "2026-03-29 01:00:00" },
	{ "*/30 * * * *", BERLIN, "2026-03-29 00:30:00", "2026-03-29 01:00:00" },
	{ "2 2 * * *", ANGELES, "2026-03-08 00:00:00", "2026-03-09 09:02:00" },
	{ "30 2 29 3 * 2026", BERLIN, "2026-01-01 00:00:00", NULL },
	/* and back: 2:30 occurs twice, 3:30 once */
	{ "30 2 * * *", BERLIN, "2026-10-24 12:00:00", "2026-10-25 00:30:00" },
	{ "30 2 * * *", BERLIN, "2026-10-25 00:30:00", "2026-10-25 01:30:00" },
	{ "30 2 * * *", BERLIN, "2026-10-25 01:30:00", "2026-10-26 01:30:00" },
	{ "30 3 * * *", BERLIN, "2026-10-24 12:00:00", "2026-10-25 02:30:00" },
	/* at midnight; by half an hour */
	{ "0 0 * * *", "America/Sao_Paulo", "2018-11-03 12:00:00", "2018-11-05 02:00:00" },
	{ "30 23 * * *", "America/Sao_Paulo", "2018-02-18 01:30:00", "2018-02-18 02:30:00" },
	{ "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 12:00:00", "2026-04-04 14:45:00" },
	{ "45 1 * * *", "Australia/Lord_Howe", "2026-04-04 14:45:00", "2026-04-04 15:15:00" },
};

START_TEST(times_come)
{
	int64_t found = next(times[_i].expr, times[_i].zone, utc(times[_i].after));
	int64_t wanted = times[_i].next ? utc(times[_i].next) : -1;

	ck_assert_msg(found == wanted, "%s in \"%s\" after %s: %lld, expected %lld (%s)",
	    times[_i].expr, times[_i].zone, times[_i].after, (long long)found, (long long)wanted,
	    times[_i].next ?: "none");
}
END_TEST

static const char *const zones[] = { BERLIN, ANGELES, "America/Sao_Paulo", "Australia/Lord_Howe",
	"Africa/Cairo", "Africa/Casablanca", "America/St_Johns", "Asia/Tehran" };

/* Tests each quarter of an hour of a year, since clocks differ from UTC by quarters: finds each
 * time at which the clock shows 0:30, 1:30, 2:30 or 23:30, and no other. */
START_TEST(each_showing_of_a_clock)
{
	int64_t at = utc("2017-12-31 00:00:00"), end = at + (int64_t)366 * 86400, t;
	int64_t found = next("30 23,0-2 * * *", zones[_i], at);

	ck_assert_int_eq(cron_zone_check(zones[_i], &(struct err){ 0 }), 0);
	for (t = at + 900; t < end; t += 900) {
		time_t when = (time_t)t;
		struct tm tm;

		ck_assert_int_eq(setenv("TZ", zones[_i], 1), 0);
		tzset();
		(void)localtime_r(&when, &tm);
		if (tm.tm_min != 30 || (tm.tm_hour > 2 && tm.tm_hour != 23)) {
			ck_assert_int_ne(found, t);
			continue;
		}
		ck_assert_int_eq(found, t);
		found = next("30 23,0-2 * * *", zones[_i], t);
	}
	ck_assert_str_eq(getenv("TZ"), zones[_i]);
}
END_TEST

static const struct {
	const char *expr, *why;
} bad[] = {
	{ "", "it has 0 fields" },
	{ "* * * *", "it has 4 fields" },
	{ "* * * * * * * *", "more than 7 fields" },
	{ "60 * * * *", "\"60\" is not a valid minute" },
	{ "-1 * * * *", "\"-1\" is not a valid minute" },
	{ "* 24 * * *", "\"24\" is not a valid hour" },
	{ "* * 0 * *", "\"0\" is not a valid day-of-month" },
	{ "* * 32 * *", "\"32\" is not a valid day-of-month" },
	{ "* * * 13 *", "\"13\" is not a valid month" },
	{ "* * * * 8", "\"8\" is not a valid day-of-week" },
	{ "* * * * mond", "\"mond\" is not a valid day-of-week" },
	{ "* * * * 1#6", "\"1#6\" is not a valid day-of-week" },
	{ "* * * * 1#0", "is not a valid day-of-week" },
	{ "* * * * * 1969", "\"1969\" is not a valid year" },
	{ "* * * * * 2100", "\"2100\" is not a valid year" },
	{ "60 * * * * * *", "\"60\" is not a valid second" },
	{ "5-3 * * * *", "\"5-3\" is not a valid minute" },
	{ "*/0 * * * *", "\"*/0\" is not a valid minute" },
	{ "*/60 * * * *", "\"*/60\" is not a valid minute" },
	{ "1-5/ * * * *", "\"1-5/\" is not a valid minute" },
	{ "1-5/2x * * * *", "is not a valid minute" },
	{ "000 * * * *", "\"000\" is not a valid minute" },
	{ "5L * * * *", "\"5L\" is not a valid minute" },
	{ "* * 5X * *", "\"5X\" is not a valid day-of-month" },
	{ "* * L-31 * *", "is not a valid day-of-month" },
	{ "* * L- * *", "is not a valid day-of-month" },
	{ ", * * * *", "its minute is empty" },
	{ "@every 5m", "only @yearly" },
	{ "@reboot", "only @yearly" },
};

START_TEST(bad_ones)
{
	struct err e = { 0 };
	struct cron c;

	ck_assert_int_eq(cron_parse(bad[_i].expr, &c, &e), -EINVAL);
	ck_assert_msg(strstr(e.msg, bad[_i].why), "%s: %s", bad[_i].expr, e.msg);
}
END_TEST

START_TEST(zones_are_files_of_tzdata)
{
	static const char *const good[] = { "", "UTC", "Local", BERLIN, "America/Argentina/Ushuaia",
		"Etc/GMT+5", "EST5EDT" };
	static const char *const none[] = { "Mars/Base", "/etc/passwd", "../zoneinfo/UTC",
		"Europe/", "Europe", "tzdata.zi", "<+03>-3", "EST5EDT,M3.2.0,M11.1.0",
		"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA" };
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		ck_assert_msg(cron_zone_check(good[i], &e) == 0, "%s: %s", good[i], e.msg);
	for (size_t i = 0; i < ELEMENTSOF(none); i++)
		ck_assert_msg(cron_zone_check(none[i], &e) == -EINVAL, "%s", none[i]);
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, times_come, 0, (int)ELEMENTSOF(times));
	tcase_add_loop_test(t, each_showing_of_a_clock, 0, (int)ELEMENTSOF(zones));
	tcase_add_loop_test(t, bad_ones, 0, (int)ELEMENTSOF(bad));
	tcase_add_test(t, zones_are_files_of_tzdata);
}

int
main(void)
{
	return unit_run("cron", add_tests);
}
