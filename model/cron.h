/* SPDX-License-Identifier: Apache-2.0 */
/* cron.h: parses cron expressions and computes the times that match. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_CRON_H
#define DROVER_MODEL_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define CRON_YEAR_MIN 1970
#define CRON_YEAR_MAX 2099
#define CRON_TEXT_MAX 1024

/* Sets of the values that match, with one bit per value. */
struct cron {
	uint64_t second, minute;
	uint32_t hour, month;
	uint32_t day, workday;     /* days of the month; workday: the working day nearest to each */
	uint8_t weekday;           /* Sunday is bit 0 */
	uint8_t last_weekday;      /* the last of each in the month */
	uint64_t nth_weekday;      /* the n-th of each in the month: bit 7 * (n - 1) + weekday */
	uint32_t before_last;      /* bit n: n days before the last day of the month */
	bool last_workday;         /* the last day of the month from Monday to Friday */
	bool any_day, any_weekday; /* if both are false, a match of either day suffices */
	uint64_t year[(CRON_YEAR_MAX - CRON_YEAR_MIN) / 64 + 1];
};

/*
 * Parses "minute hour day-of-month month day-of-week", with the year as an optional sixth field; if
 * there are seven, the first is the second. Fields have lists, ranges, steps, names, "?", and for
 * days L, LW, 15W, 5L, 5#3. Also @yearly, @annually, @monthly, @weekly, @daily, @hourly. Returns 0,
 * or -EINVAL with *e.
 */
int cron_parse(const char *text, struct cron *ret, struct err *e);

/*
 * Returns the first second later than `after` (since 1970) at which a clock in this time zone shows
 * a time that c matches, or -1 if there is none up to the end of the year 2099. A time that is
 * skipped when clocks go forward does not match; one that occurs twice when they go back matches
 * twice. zone has passed cron_zone_check(). Not thread-safe: it changes the process's TZ while it
 * runs.
 */
int64_t cron_next(const struct cron *c, const char *zone, int64_t after);

/* Checks that this machine knows the time zone ("" and "UTC", "Europe/Berlin", "Local"). Returns 0,
 * or -EINVAL with *e. */
int cron_zone_check(const char *zone, struct err *e);

#endif
