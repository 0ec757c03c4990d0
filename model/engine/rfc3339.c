/* SPDX-License-Identifier: Apache-2.0 */
/* rfc3339.c: parses and prints the times in JSON. Runs in: supervisor, cli. */
#include <string.h>

#include "common/duration.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

#define DAY_S 86400

/* Returns the days since 1970 of a Gregorian date. Months count from March, so that a leap day is
 * the last of the year. */
static int64_t
days_from_date(int64_t year, int month, int day)
{
	int64_t y = month <= 2 ? year - 1 : year;
	int64_t era = (y >= 0 ? y : y - 399) / 400;
	int64_t of_era = y - era * 400;
	int64_t of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;

	return era * 146097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719468;
}

static void
date_from_days(int64_t days, int *ret_year, int *ret_month, int *ret_day)
{
	int64_t z = days + 719468;
	int64_t era = (z >= 0 ? z : z - 146096) / 146097;
	int64_t of_era = z - era * 146097;
	int64_t y = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
	int64_t of_year = of_era - (365 * y + y / 4 - y / 100);
	int64_t m = (5 * of_year + 2) / 153;

	*ret_day = (int)(of_year - (153 * m + 2) / 5 + 1);
	*ret_month = (int)(m < 10 ? m + 3 : m - 9);
	*ret_year = (int)(y + era * 400 + (*ret_month <= 2));
}

static char *
put_digits(char *p, int64_t value, int digits)
{
	int i;

	for (i = digits - 1; i >= 0; i--, value /= 10)
		p[i] = (char)('0' + value % 10);
	return p + digits;
}

void
time_format(int64_t ns, char ret[RFC3339_SIZE])
{
	int64_t fraction = ns % NS_PER_S, seconds = ns / NS_PER_S, days, of_day;
	int year, month, day;
	char *p = ret;

	if (fraction < 0) {
		fraction += NS_PER_S;
		seconds--;
	}
	days = seconds / DAY_S - (seconds % DAY_S < 0);
	of_day = seconds - days * DAY_S;
	date_from_days(days, &year, &month, &day);
	p = put_digits(p, year, 4);
	*p++ = '-';
	p = put_digits(p, month, 2);
	*p++ = '-';
	p = put_digits(p, day, 2);
	*p++ = 'T';
	p = put_digits(p, of_day / 3600, 2);
	*p++ = ':';
	p = put_digits(p, of_day / 60 % 60, 2);
	*p++ = ':';
	p = put_digits(p, of_day % 60, 2);
	if (fraction) {
		*p++ = '.';
		p = put_digits(p, fraction, 9);
		while (p[-1] == '0')
			p--;
	}
	strcpy(p, "Z");
}

/* Parses exactly `digits` decimal digits at *p and moves *p past them; -1 if there are fewer. */
static int64_t
take_digits(const char **p, int digits)
{
	int64_t value = 0;

	for (; digits > 0; digits--, (*p)++) {
		if (**p < '0' || **p > '9')
			return -1;
		value = value * 10 + (**p - '0');
	}
	return value;
}

/* Parses ".123" to nanoseconds; digits beyond the ninth are ignored. Returns 0 without a dot, -1
 * for a dot without digits. */
static int64_t
take_fraction(const char **p)
{
	int64_t ns = 0, unit = NS_PER_S / 10;

	if (**p != '.')
		return 0;
	(*p)++;
	if (**p < '0' || **p > '9')
		return -1;
	for (; **p >= '0' && **p <= '9'; (*p)++, unit /= 10)
		ns += unit * (**p - '0');
	return ns;
}

/* Parses "Z" or "+02:00". */
static bool
take_zone(const char **p, int64_t *ret_s)
{
	int64_t sign = **p == '-' ? -1 : 1, h, m;

	if (**p == 'Z' || **p == 'z') {
		(*p)++;
		*ret_s = 0;
		return true;
	}
	if (**p != '+' && **p != '-')
		return false;
	(*p)++;
	h = take_digits(p, 2);
	if (h < 0 || h > 23 || *(*p)++ != ':')
		return false;
	m = take_digits(p, 2);
	*ret_s = sign * (h * 3600 + m * 60);
	return m >= 0 && m < 60;
}

bool
time_parse(const char *text, int64_t *ret_ns)
{
	static const char separators[] = "-- ::";
	static const int64_t low[] = { 0, 1, 1, 0, 0, 0 }, high[] = { 9999, 12, 31, 23, 59, 60 };
	int64_t v[6], fraction, zone, seconds;
	const char *p = text;
	int i;

	for (i = 0; i < 6; i++) {
		v[i] = take_digits(&p, i == 0 ? 4 : 2);
		if (v[i] < low[i] || v[i] > high[i])
			return false;
		if (i == 5)
			break;
		if (i == 2 ? *p != 'T' && *p != 't' && *p != ' ' : *p != separators[i])
			return false;
		p++;
	}
	fraction = take_fraction(&p);
	if (fraction < 0 || !take_zone(&p, &zone) || *p)
		return false;
	seconds = days_from_date(v[0], (int)v[1], (int)v[2]) * DAY_S + v[3] * 3600 + v[4] * 60 +
		  v[5] - zone;
	if (v[0] <= 1)
		seconds = fraction = 0; /* Go's zero time */
	if (seconds < -9223372036 || seconds > 9223372035)
		return false;
	*ret_ns = seconds * NS_PER_S + fraction;
	return true;
}
