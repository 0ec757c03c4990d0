/* SPDX-License-Identifier: Apache-2.0 */
/* cron.h: cron expressions: read, and the times that they mean. Runs in: supervisor, cli. */
#ifndef DROVER_MODEL_CRON_H
#define DROVER_MODEL_CRON_H

#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"

#define CRON_YEAR_MIN 1970
#define CRON_YEAR_MAX 2099
#define CRON_TEXT_MAX 1024

/* A bit for each value. */
struct cron {
	uint64_t second, minute;
	uint32_t hour, month;
	uint32_t day, workday;     /* of the month; workday: the one nearest to it */
	uint8_t weekday;           /* Sunday is 0 */
	uint8_t last_weekday;      /* of the month */
	uint64_t nth_weekday;      /* 7 * (which - 1) + weekday */
	uint32_t before_last;      /* so many days before the month's last one; bit 0: that one */
	bool last_workday;         /* the last of the month from Monday to Friday */
	bool any_day, any_weekday; /* where neither is, a day of one of the two is enough */
	uint64_t year[(CRON_YEAR_MAX - CRON_YEAR_MIN) / 64 + 1];
};

/*
 * minute hour day-of-month month day-of-week; a sixth field is the year; of seven the first is the
 * second. Lists, ranges, steps, names, "?", and L, LW, 15W, 5L, 5#3 for days; or @yearly,
 * @annually,
 * @monthly, @weekly, @daily, @hourly. 0, or -EINVAL with what is wrong with it.
 */
int cron_parse(const char *text, struct cron *ret, struct err *e);

/*
 * The first second after `after` (of 1970) at which the clocks of this time zone show what c says,
 * or -1: there is none until the end of the year 2099. What a clock that is put forward leaves out
 * does not come, and what one that is put back shows twice comes twice. The zone is one that
 * cron_zone_check() has taken. Not for two threads at once: it changes the process's TZ meanwhile.
 */
int64_t cron_next(const struct cron *c, const char *zone, int64_t after);

/* Does this machine know the time zone ("" and "UTC", "Europe/Berlin", "Local")? 0, or -EINVAL with
 * the sentence. */
int cron_zone_check(const char *zone, struct err *e);

#endif
