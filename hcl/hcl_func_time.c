/* SPDX-License-Identifier: Apache-2.0 */
/* hcl_func_time.c: functions about timestamps (RFC 3339). Runs in: cli, job-parser. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/duration.h"
#include "hcl/hcl_func.h"
#include "hcl/hcl_normal.h"
#include "hcl/hcl_time.h"
#include "lang/text.h"

#define DAY_S 86400

/* Days from 1970-01-01 of a day of the Gregorian calendar; the year may be negative. */
static int64_t
days_of(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year, era, of_era;
	int from_march = (month + 9) % 12;

	era = (y >= 0 ? y : y - 399) / 400;
	of_era = y - era * 400;
	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 +
	       (153 * from_march + 2) / 5 + day - 1 - 719468;
}

static void
set_date(struct hcl_time *t, int64_t days)
{
	int64_t z = days + 719468, era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t of_era = z - era * 146097;
	int64_t years = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int of_year = (int)(of_era - (365 * years + years / 4 - years / 100));
	int from_march = (5 * of_year + 2) / 153;

	t->day = of_year - (153 * from_march + 2) / 5 + 1;
	t->month = from_march < 10 ? from_march + 3 : from_march - 9;
	t->year = years + era * 400 + (t->month <= 2);
}

bool
hcl_time_is_date(int64_t year, int month, int day)
{
	static const int days[] = { 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31 };
	bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);

	return month >= 1 && month <= 12 && day >= 1 &&
	       day <= days[month - 1] + (month == 2 && leap);
}

/* Reads two digits; -1 if they are none. */
static int
two_digits(const char *s)
{
	if (!isdigit((unsigned char)s[0]) || !isdigit((unsigned char)s[1]))
		return -1;
	return 10 * (s[0] - '0') + (s[1] - '0');
}

/* Z, or an offset such as -07:00. */
static bool
read_zone(const char *s, struct hcl_time *t)
{
	int hours, minutes;

	if (strcmp(s, "Z") == 0)
		return true;
	if ((*s != '+' && *s != '-') || strlen(s) != 6 || s[3] != ':')
		return false;
	hours = two_digits(s + 1);
	minutes = two_digits(s + 4);
	t->offset_s = (*s == '-' ? -60 : 60) * (60 * hours + minutes);
	return hours >= 0 && hours < 24 && minutes >= 0 && minutes < 60;
}

/* YYYY-MM-DDTHH:MM:SS[.fraction]zone */
static bool
read_time(const char *s, struct hcl_time *t)
{
	uint32_t unit = 100 * 1000 * 1000;
	int century;

	*t = (struct hcl_time){ 0 };
	if (strlen(s) < strlen("YYYY-MM-DDTHH:MM:SSZ"))
		return false;
	century = two_digits(s);
	t->year = 100 * century + two_digits(s + 2);
	t->month = two_digits(s + 5);
	t->day = two_digits(s + 8);
	t->hour = two_digits(s + 11);
	t->minute = two_digits(s + 14);
	t->second = two_digits(s + 17);
	if (century < 0 || two_digits(s + 2) < 0 || s[4] != '-' || s[7] != '-' || s[10] != 'T' ||
	    s[13] != ':' || s[16] != ':' || t->hour < 0 || t->hour > 23 || t->minute < 0 ||
	    t->minute > 59 || t->second < 0 || t->second > 59 ||
	    !hcl_time_is_date(t->year, t->month, t->day))
		return false;
	s += 19;
	if (*s == '.' && isdigit((unsigned char)s[1]))
		for (s++; isdigit((unsigned char)*s); s++, unit /= 10)
			t->ns += unit * (uint32_t)(*s - '0');
	return read_zone(s, t);
}

static struct hcl_time
argument_time(struct hcl_call *c, size_t i)
{
	const struct hcl_value *s = c->args[i];
	struct hcl_time t;

	hcl_count_bytes(c->h, s->len);
	if (strlen(s->string) != s->len || !read_time(s->string, &t))
		hcl_refuse_argument(
		    c, i, "\"%.80s\" is not a timestamp such as 2006-01-02T15:04:05Z", s->string);
	return t;
}

/* letter: as in a format. Z has no offset for UTC, ZZZ writes it as UTC; ZZZZZ has a colon. */
static void
add_zone(struct text *t, const struct hcl_time *at, size_t letters)
{
	int minutes = abs(at->offset_s) / 60;
	char buf[16];

	if (at->offset_s == 0 && (letters == 1 || letters == 3)) {
		text_add(t, letters == 1 ? "Z" : "UTC");
		return;
	}
	(void)snprintf(buf, sizeof buf, "%c%02d%s%02d", at->offset_s < 0 ? '-' : '+', minutes / 60,
	    letters == 3 || letters == 4 ? "" : ":", minutes % 60);
	text_add(t, buf);
}

struct hcl_value *
hcl_time_text(struct hcl *h, const struct hcl_time *t)
{
	struct text text = { .arena = hcl_arena(h) };

	text_add(&text, hcl_printf(h, "%s%04lld-%02d-%02dT%02d:%02d:%02d", t->year < 0 ? "-" : "",
			    llabs(t->year), t->month, t->day, t->hour, t->minute, t->second));
	add_zone(&text, t, 1);
	return hcl_text_value(&text);
}

static void
add_nanoseconds(struct hcl_time *t, int64_t ns)
{
	int64_t days = days_of(t->year, t->month, t->day), seconds;

	seconds = 3600 * t->hour + 60 * t->minute + t->second + ns / NS_PER_S;
	ns = t->ns + ns % NS_PER_S;
	seconds += ns < 0 ? -1 : ns >= NS_PER_S;
	days += seconds / DAY_S;
	seconds %= DAY_S;
	if (seconds < 0) {
		seconds += DAY_S;
		days--;
	}
	set_date(t, days);
	t->hour = (int)(seconds / 3600);
	t->minute = (int)(seconds / 60 % 60);
	t->second = (int)(seconds % 60);
}

struct hcl_value *
hcl_fn_timeadd(struct hcl_call *c)
{
	struct hcl_time t = argument_time(c, 0);
	struct err e = { 0 };
	int64_t ns;

	if (strlen(c->args[1]->string) != c->args[1]->len ||
	    duration_parse(c->args[1]->string, &ns, &e) < 0)
		hcl_refuse_argument(c, 1, "%s", e.msg);
	add_nanoseconds(&t, ns);
	return hcl_time_text(c->h, &t);
}

static const char *
month_name(int month)
{
	static const char *const names[] = { "January", "February", "March", "April", "May", "June",
		"July", "August", "September", "October", "November", "December" };

	return names[month - 1];
}

static const char *
day_name(const struct hcl_time *t)
{
	static const char *const names[] = { "Thursday", "Friday", "Saturday", "Sunday", "Monday",
		"Tuesday", "Wednesday" };
	int64_t days = days_of(t->year, t->month, t->day) % 7;

	return names[days < 0 ? days + 7 : days];
}

/* The sentence about a wrong number of letters, or NULL after the part was added. */
static const char *
add_name(struct text *out, const char *name, size_t letters)
{
	if (letters < 3 || letters > 4)
		return "a name has three letters for its short form, or four";
	text_bytes(out, name, letters == 3 ? 3 : strlen(name));
	return NULL;
}

static const char *
add_digits(struct text *out, int number, size_t letters)
{
	char buf[16];

	if (letters > 2)
		return "a number has one letter, or two for two digits";
	(void)snprintf(buf, sizeof buf, "%0*d", (int)letters, number);
	text_add(out, buf);
	return NULL;
}

static const char *
add_half_day(struct text *out, char letter, int hour, size_t letters)
{
	if (letters != 2)
		return "this must be \"AA\" or \"aa\"";
	text_add(out, letter == 'A' ? (hour < 12 ? "AM" : "PM") : (hour < 12 ? "am" : "pm"));
	return NULL;
}

static const char *
add_year(struct text *out, int64_t year, size_t letters)
{
	char buf[24];

	if (letters != 2 && letters != 4)
		return "a year must be \"YY\" or \"YYYY\"";
	(void)snprintf(
	    buf, sizeof buf, "%0*lld", (int)letters, (long long)(letters == 2 ? year % 100 : year));
	text_add(out, buf);
	return NULL;
}

static const char *
add_part(struct text *out, const struct hcl_time *t, char letter, size_t letters)
{
	switch (letter) {
	case 'Y':
		return add_year(out, t->year, letters);
	case 'M':
		return letters > 2 ? add_name(out, month_name(t->month), letters)
				   : add_digits(out, t->month, letters);
	case 'D':
		return add_digits(out, t->day, letters);
	case 'E':
		return add_name(out, day_name(t), letters);
	case 'h':
		return add_digits(out, t->hour, letters);
	case 'H':
		return add_digits(out, t->hour % 12 == 0 ? 12 : t->hour % 12, letters);
	case 'A':
	case 'a':
		return add_half_day(out, letter, t->hour, letters);
	case 'm':
		return add_digits(out, t->minute, letters);
	case 's':
		return add_digits(out, t->second, letters);
	case 'Z':
		if (letters == 2 || letters > 5)
			return "a time zone must be \"Z\", \"ZZZ\", \"ZZZZ\" or \"ZZZZZ\"";
		add_zone(out, t, letters);
		return NULL;
	default:
		return "unknown letter: put texts into single quotes";
	}
}

/* A text in single quotes, where two quotes stand for one; two quotes alone are one too. Returns
 * its length, or 0 if it has no end. */
static size_t
add_quoted(struct text *out, const char *s, size_t len)
{
	size_t i = 1;

	if (len > 1 && s[1] == '\'') {
		text_add(out, "'");
		return 2;
	}
	for (; i < len; i++) {
		if (s[i] == '\'' && (i + 1 == len || s[i + 1] != '\''))
			return i + 1;
		text_bytes(out, s + i, 1);
		if (s[i] == '\'' && ++i + 1 == len)
			return len;
	}
	return 0;
}

struct hcl_value *
hcl_fn_formatdate(struct hcl_call *c)
{
	const char *format = c->args[0]->string, *why;
	struct hcl_time t = argument_time(c, 1);
	struct text out = { .arena = hcl_arena(c->h) };
	size_t n;

	hcl_count_bytes(c->h, c->args[0]->len);
	for (size_t i = 0; i < c->args[0]->len; i += n) {
		n = 1;
		if (format[i] == '\'') {
			n = add_quoted(&out, format + i, c->args[0]->len - i);
			if (n == 0)
				hcl_refuse_argument(c, 0, "a quote has no end");
		} else if (isalpha((unsigned char)format[i])) {
			while (format[i + n] == format[i])
				n++;
			why = add_part(&out, &t, format[i], n);
			if (why)
				hcl_refuse_argument(
				    c, 0, "\"%.*s\": %s", n < 40 ? (int)n : 40, format + i, why);
		} else {
			text_bytes(&out, format + i, 1);
		}
	}
	return hcl_text_value(&out);
}
