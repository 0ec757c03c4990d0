// SPDX-License-Identifier: Apache-2.0
/*
 * cron.c: parses cron expressions in Nomad's form, and finds the next time that matches one. A time
 * matches if a clock in its zone shows it, so changes to and from summer time need no special rule.
 * Runs in: supervisor, cli.
 */
#include "model/cron.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <time.h>

#include "common/cleanup.h"
#include "common/mem.h"

#define FIELDS_MAX 7

/* --- parsing --- */

enum field { SECOND, MINUTE, HOUR, DAY, MONTH, WEEKDAY, YEAR };

static const char *const month_names[] = { "january", "february", "march", "april", "may", "june",
	"july", "august", "september", "october", "november", "december" };
static const char *const weekday_names[] = { "sunday", "monday", "tuesday", "wednesday", "thursday",
	"friday", "saturday" };

static const struct {
	const char *name;
	unsigned min, max, digits;
	const char *const *names; /* names of the values from min on */
	unsigned n_names;
} fields[] = {
	[SECOND] = { "second", 0, 59, 2, NULL, 0 },
	[MINUTE] = { "minute", 0, 59, 2, NULL, 0 },
	[HOUR] = { "hour", 0, 23, 2, NULL, 0 },
	[DAY] = { "day-of-month", 1, 31, 2, NULL, 0 },
	[MONTH] = { "month", 1, 12, 2, month_names, ELEMENTSOF(month_names) },
	[WEEKDAY] = { "day-of-week", 0, 7, 2, weekday_names, ELEMENTSOF(weekday_names) },
	[YEAR] = { "year", CRON_YEAR_MIN, CRON_YEAR_MAX, 4, NULL, 0 },
};

static const struct {
	const char *name, *meaning;
} shorthands[] = {
	{ "@yearly", "0 0 0 1 1 * *" },
	{ "@annually", "0 0 0 1 1 * *" },
	{ "@monthly", "0 0 0 1 * * *" },
	{ "@weekly", "0 0 0 * * 0 *" },
	{ "@daily", "0 0 0 * * * *" },
	{ "@hourly", "0 0 * * * * *" },
};

static void
put_value(struct cron *c, enum field f, unsigned v)
{
	switch (f) {
	case SECOND:
		c->second |= 1ULL << v;
		break;
	case MINUTE:
		c->minute |= 1ULL << v;
		break;
	case HOUR:
		c->hour |= 1U << v;
		break;
	case DAY:
		c->day |= 1U << v;
		break;
	case MONTH:
		c->month |= 1U << v;
		break;
	case WEEKDAY:
		c->weekday |= (uint8_t)(1U << v % 7);
		break;
	case YEAR:
		v -= CRON_YEAR_MIN;
		c->year[v / 64] |= 1ULL << v % 64;
		break;
	}
}

static void
put_range(struct cron *c, enum field f, unsigned first, unsigned last, unsigned step)
{
	for (unsigned v = first; v <= last; v += step)
		put_value(c, f, v);
}

/* Parses at most max digits; false if there are none or more. */
static bool
take_digits(const char **at, unsigned max, unsigned *ret)
{
	unsigned n = 0, v = 0;

	while (n <= max && isdigit((unsigned char)(*at)[n]))
		v = v * 10 + (unsigned)((*at)[n++] - '0');
	if (n == 0 || n > max)
		return false;
	*at += n;
	*ret = v;
	return true;
}

/* Parses a whole name or its first three letters. */
static bool
take_name(const char **at, enum field f, unsigned *ret)
{
	for (unsigned i = 0; i < fields[f].n_names; i++) {
		const char *name = fields[f].names[i];

		if (strncasecmp(*at, name, 3) != 0)
			continue;
		*at += strncasecmp(*at, name, strlen(name)) == 0 ? strlen(name) : 3;
		*ret = fields[f].min + i;
		return true;
	}
	return false;
}

static bool
take_value(const char **at, enum field f, unsigned *ret)
{
	unsigned v;

	if (take_name(at, f, ret))
		return true;
	if (!take_digits(at, fields[f].digits, &v) || v < fields[f].min || v > fields[f].max)
		return false;
	*ret = v;
	return true;
}

/* Parses "/n" or nothing, up to the end of the text. */
static bool
take_step(const char *at, enum field f, unsigned *ret)
{
	*ret = 1;
	if (*at != '/')
		return *at == '\0';
	at++;
	return take_digits(&at, 4, ret) && *at == '\0' && *ret >= 1 && *ret <= fields[f].max;
}

/* Parses the forms that only days have: L, L-n, LW; 15W; 5L, 5#3. */
static bool
take_special(struct cron *c, const char *at, enum field f)
{
	unsigned v, n = 0;

	if (f == DAY && strcasecmp(at, "lw") == 0)
		return c->last_workday = true;
	if (f == DAY && tolower((unsigned char)*at) == 'l') {
		at++;
		if (*at == '-' && (at++, !take_digits(&at, 2, &n) || n > 30))
			return false;
		c->before_last |= 1U << n;
		return *at == '\0';
	}
	if ((f != DAY && f != WEEKDAY) || !take_value(&at, f, &v))
		return false;
	if (f == DAY) {
		c->workday |= 1U << v;
		return strcasecmp(at, "w") == 0;
	}
	if (strcasecmp(at, "l") == 0) {
		c->last_weekday |= (uint8_t)(1U << v % 7);
		return true;
	}
	if (at[0] != '#' || at[1] < '1' || at[1] > '5' || at[2])
		return false;
	c->nth_weekday |= 1ULL << ((unsigned)(at[1] - '1') * 7 + v % 7);
	return true;
}

/* Sunday may be 0 or 7, so it can begin and end a range. */
static bool
take_range(struct cron *c, const char *at, enum field f)
{
	unsigned first, last, step, max = f == WEEKDAY ? 6 : fields[f].max;

	if (!take_value(&at, f, &first))
		return false;
	last = first;
	if (*at == '-') {
		at++;
		if (!take_value(&at, f, &last))
			return false;
		if (f == WEEKDAY && last == 0 && first > 0)
			last = 7;
		if (f == WEEKDAY && first == 7 && last < 7)
			first = 0;
	} else if (*at == '/') {
		last = max;
	}
	if (!take_step(at, f, &step) || first > last)
		return false;
	put_range(c, f, first, last, step);
	return true;
}

static bool
take_entry(struct cron *c, const char *at, enum field f)
{
	unsigned step, max = f == WEEKDAY ? 6 : fields[f].max;

	if (strcmp(at, "*") == 0 || strcmp(at, "?") == 0) {
		c->any_day |= f == DAY;
		c->any_weekday |= f == WEEKDAY;
		put_range(c, f, fields[f].min, max, 1);
		return true;
	}
	if (*at == '*') {
		if (at[1] != '/' || !take_step(at + 1, f, &step))
			return false;
		put_range(c, f, fields[f].min, max, step);
		return true;
	}
	return take_range(c, at, f) || take_special(c, at, f);
}

static int
take_field(struct cron *c, char *text, enum field f, struct err *e)
{
	char *entry;
	bool any = false;

	while ((entry = strsep(&text, ","))) {
		if (!*entry)
			continue;
		any = true;
		if (!take_entry(c, entry, f))
			return err_say(
			    e, -EINVAL, "\"%.40s\" is not a valid %s", entry, fields[f].name);
	}
	return any ? 0 : err_say(e, -EINVAL, "its %s is empty", fields[f].name);
}

static int
split(char *text, char *words[FIELDS_MAX], struct err *e)
{
	char *word;
	int n = 0;

	while ((word = strsep(&text, " \t\r\n"))) {
		if (!*word)
			continue;
		if (n == FIELDS_MAX)
			return err_say(e, -EINVAL, "it has more than %d fields", FIELDS_MAX);
		words[n++] = word;
	}
	return n >= 5 ? n : err_say(e, -EINVAL, "it has %d fields, but needs at least 5", n);
}

int
cron_parse(const char *text, struct cron *ret, struct err *e)
{
	char copy[CRON_TEXT_MAX], *words[FIELDS_MAX], any[] = "*", zero[] = "0";
	struct cron c = { 0 };
	int n, r = 0;

	for (size_t i = 0; i < ELEMENTSOF(shorthands); i++)
		if (strcmp(text, shorthands[i].name) == 0)
			text = shorthands[i].meaning;
	if (strlen(text) >= sizeof copy)
		return err_say(e, -EINVAL, "it is too long");
	if (*text == '@')
		return err_say(e, -EINVAL,
		    "only @yearly, @annually, @monthly, @weekly, @daily and @hourly are known");
	strcpy(copy, text);
	n = split(copy, words, e);
	if (n < 0)
		return n;
	for (enum field f = SECOND; f <= YEAR && r == 0; f++) {
		int at = n == FIELDS_MAX ? (int)f : (int)f - 1;

		r = take_field(&c, at < 0 ? zero : at < n ? words[at] : any, f, e);
	}
	if (r == 0)
		*ret = c;
	return r;
}

/* --- days --- */

static unsigned
month_length(const struct tm *day)
{
	static const uint8_t lengths[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	int y = day->tm_year + 1900;
	bool leap = y % 4 == 0 && (y % 100 != 0 || y % 400 == 0);

	return lengths[day->tm_mon] + (leap && day->tm_mon == 1);
}

/* Returns the day from Monday to Friday that is nearest to `day` in the same month. */
static unsigned
nearest_workday(unsigned day, unsigned weekday, unsigned length)
{
	if (weekday == 6)
		return day > 1 ? day - 1 : day + 2;
	if (weekday == 0)
		return day < length ? day + 1 : day - 2;
	return day;
}

static bool
is_workday_of(const struct cron *c, const struct tm *day, unsigned length)
{
	unsigned d = (unsigned)day->tm_mday;

	if (!c->workday && !c->last_workday)
		return false;
	for (unsigned v = d > 2 ? d - 2 : 1; v <= d + 2 && v <= length; v++) {
		unsigned weekday = ((unsigned)day->tm_wday + 7 + v - d) % 7;
		bool wanted = (c->workday >> v & 1) || (c->last_workday && v == length);

		if (wanted && nearest_workday(v, weekday, length) == d)
			return true;
	}
	return false;
}

static bool
is_day_of_month(const struct cron *c, const struct tm *day)
{
	unsigned length = month_length(day), d = (unsigned)day->tm_mday;

	return (c->day >> d & 1) || (c->before_last >> (length - d) & 1) ||
	       is_workday_of(c, day, length);
}

static bool
is_day_of_week(const struct cron *c, const struct tm *day)
{
	unsigned w = (unsigned)day->tm_wday, d = (unsigned)day->tm_mday;

	return (c->weekday >> w & 1) || (c->nth_weekday >> ((d - 1) / 7 * 7 + w) & 1) ||
	       ((c->last_weekday >> w & 1) && d + 7 > month_length(day));
}

static bool
is_day(const struct cron *c, const struct tm *day)
{
	unsigned y = (unsigned)(day->tm_year + 1900 - CRON_YEAR_MIN);

	if (!(c->year[y / 64] >> y % 64 & 1) || !(c->month >> (day->tm_mon + 1) & 1))
		return false;
	if (c->any_day && c->any_weekday)
		return true;
	return (!c->any_day && is_day_of_month(c, day)) ||
	       (!c->any_weekday && is_day_of_week(c, day));
}

/* --- zones --- */

#define DAY_S      86400
#define ZONE_FILES "/usr/share/zoneinfo/"

static bool
is_utc(const char *zone)
{
	return !*zone || strcmp(zone, "UTC") == 0;
}

int
cron_zone_check(const char *zone, struct err *e)
{
	static const char good[] =
	    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_+-/";
	char path[sizeof ZONE_FILES + 64], magic[5] = "";
	cleanup_file FILE *f = NULL;

	if (is_utc(zone) || strcmp(zone, "Local") == 0)
		return 0;
	if (strlen(zone) <= 64 && *zone != '/' && strspn(zone, good) == strlen(zone)) {
		(void)snprintf(path, sizeof path, ZONE_FILES "%s", zone);
		f = fopen(path, "re");
	}
	if (!f || fread(magic, 1, 4, f) != 4 || strcmp(magic, "TZif") != 0)
		return err_say(e, -EINVAL,
		    "time zone \"%.64s\" is unknown: there is no file of this name in " ZONE_FILES,
		    zone);
	return 0;
}

/* Returns the seconds to add to UTC at this time, in the zone of the variable TZ. */
static int64_t
offset_at(int64_t t)
{
	time_t when = (time_t)t;
	struct tm tm;

	return localtime_r(&when, &tm) ? tm.tm_gmtoff : 0;
}

static void
set_zone(const char *zone)
{
	(void)(zone ? setenv("TZ", zone, 1) : unsetenv("TZ"));
	tzset();
}

/* --- the next time --- */

/* Returns the first matching second of the day at or after s, or -1. */
static int64_t
next_in_day(const struct cron *c, int64_t s)
{
	while (s < DAY_S) {
		if (!(c->hour >> s / 3600 & 1))
			s = (s / 3600 + 1) * 3600;
		else if (!(c->minute >> s / 60 % 60 & 1))
			s = (s / 60 + 1) * 60;
		else if (c->second >> s % 60 & 1)
			return s;
		else
			s++;
	}
	return -1;
}

/* Returns the first matching time on this day if the local clock differs by `offset` from UTC.
 * midnight is the day's beginning as a UTC time. */
static int64_t
next_with_offset(const struct cron *c, int64_t midnight, int64_t offset, bool utc, int64_t after)
{
	int64_t s = after + 1 + offset - midnight, t;

	for (s = s > 0 ? s : 0; (s = next_in_day(c, s)) >= 0; s++) {
		t = midnight + s - offset;
		if (utc || offset_at(t) == offset)
			return t;
	}
	return -1;
}

/* Clocks may be changed on the day, but not twice within three days, so the two offsets around it
 * suffice. */
static int64_t
next_on_day(const struct cron *c, int64_t midnight, bool utc, int64_t after)
{
	int64_t before = utc ? 0 : offset_at(midnight - DAY_S),
		behind = utc ? 0 : offset_at(midnight + 2 * DAY_S);
	int64_t t = next_with_offset(c, midnight, before, utc, after), u;

	if (before == behind)
		return t;
	u = next_with_offset(c, midnight, behind, utc, after);
	return t < 0 || (u >= 0 && u < t) ? u : t;
}

static int64_t
search(const struct cron *c, bool utc, int64_t after)
{
	int64_t midnight, t;
	struct tm day;

	/* A clock may be put back over midnight. */
	midnight = after - after % DAY_S - 2 * DAY_S;
	for (midnight = midnight > 0 ? midnight : 0;; midnight += DAY_S) {
		time_t when = (time_t)midnight;

		if (!gmtime_r(&when, &day) || day.tm_year + 1900 > CRON_YEAR_MAX)
			return -1;
		if (!is_day(c, &day))
			continue;
		t = next_on_day(c, midnight, utc, after);
		if (t >= 0)
			return t;
	}
}

int64_t
cron_next(const struct cron *c, const char *zone, int64_t after)
{
	cleanup_free char *before = NULL;
	const char *now = getenv("TZ");
	int64_t t;

	if (after < 0)
		after = 0;
	if (is_utc(zone))
		return search(c, true, after);
	if (now)
		before = mem_strdup(now);
	set_zone(strcmp(zone, "Local") == 0 ? ":/etc/localtime" : zone);
	t = search(c, false, after);
	set_zone(before);
	return t;
}
