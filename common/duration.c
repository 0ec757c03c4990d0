// SPDX-License-Identifier: Apache-2.0
/* duration.c: parses and prints durations. Runs in: every process. */
#include "common/duration.h"

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "common/cleanup.h"

#define LIMIT (1ull << 63) /* the magnitude of INT64_MIN, one more than that of INT64_MAX */

static const struct unit {
	const char *name;
	uint64_t ns;
} units[] = {
	{ "ns", 1 },
	{ "us", 1000 },
	{ "\xc2\xb5s", 1000 }, /* U+00B5, the micro sign */
	{ "\xce\xbcs", 1000 }, /* U+03BC, the Greek letter */
	{ "ms", 1000000 },
	{ "s", 1000000000 },
	{ "m", 60000000000 },
	{ "h", 3600000000000 },
};

static const struct unit *
find_unit(const char *at, size_t len)
{
	for (size_t i = 0; i < ELEMENTSOF(units); i++)
		if (strlen(units[i].name) == len && memcmp(units[i].name, at, len) == 0)
			return &units[i];
	return NULL;
}

/* Reads the digits before the point. Returns false on overflow. */
static bool
read_whole(const char **at, uint64_t *ret)
{
	uint64_t v = 0;

	for (; **at >= '0' && **at <= '9'; (*at)++) {
		if (v > LIMIT / 10)
			return false;
		v = v * 10 + (uint64_t)(**at - '0');
		if (v > LIMIT)
			return false;
	}
	*ret = v;
	return true;
}

/*
 * Returns the digits after the point as an integer and its scale; digits that would overflow are
 * ignored. Uses floating point because Go does: 0.3333333333333333333h is exactly 20m there.
 */
static uint64_t
read_fraction(const char **at, double *ret_scale)
{
	uint64_t v = 0;
	bool full = false;

	*ret_scale = 1;
	for (; **at >= '0' && **at <= '9'; (*at)++) {
		uint64_t next;

		full = full || v > (LIMIT - 1) / 10;
		if (full)
			continue;
		next = v * 10 + (uint64_t)(**at - '0');
		if (next > LIMIT) {
			full = true;
			continue;
		}
		v = next;
		*ret_scale *= 10;
	}
	return v;
}

/* Adds one number with its unit at *at to *sum. */
static int
add_part(const char **at, const char *text, uint64_t *sum, struct err *e)
{
	const char *start = *at;
	const struct unit *unit;
	uint64_t whole = 0, part = 0;
	double scale = 1;
	size_t digits, len;

	if (!read_whole(at, &whole))
		return err_say(e, -ERANGE, "duration '%s' is out of range", text);
	digits = (size_t)(*at - start);
	if (**at == '.') {
		const char *point = ++*at;

		part = read_fraction(at, &scale);
		digits += (size_t)(*at - point);
	}
	if (digits == 0)
		return err_say(
		    e, -EINVAL, "'%s' is not a duration such as \"30s\" or \"1h30m\"", text);
	len = strcspn(*at, ".0123456789");
	if (len == 0)
		return err_say(e, -EINVAL, "duration '%s' has no unit (ns, us, ms, s, m, h)", text);
	unit = find_unit(*at, len);
	if (!unit)
		return err_say(e, -EINVAL,
		    "duration '%s' has an unknown unit '%.*s' (known: ns, us, ms, s, m, h)", text,
		    (int)len, *at);
	*at += len;
	if (whole > LIMIT / unit->ns)
		return err_say(e, -ERANGE, "duration '%s' is out of range", text);
	whole = whole * unit->ns + (uint64_t)((double)part * ((double)unit->ns / scale));
	if (whole > LIMIT - *sum)
		return err_say(e, -ERANGE, "duration '%s' is out of range", text);
	*sum += whole;
	return 0;
}

int
duration_parse(const char *text, int64_t *ret_ns, struct err *e)
{
	const char *at = text;
	bool negative = *at == '-';
	uint64_t sum = 0;
	int r;

	if (*at == '-' || *at == '+')
		at++;
	if (strcmp(at, "0") == 0) {
		*ret_ns = 0;
		return 0;
	}
	do {
		r = add_part(&at, text, &sum, e);
		if (r < 0)
			return r;
	} while (*at);
	if (!negative && sum >= LIMIT)
		return err_say(e, -ERANGE, "duration '%s' is out of range", text);
	*ret_ns = (int64_t)(negative ? -sum : sum);
	return 0;
}

/* Writes value / 10^digits without trailing zeros so that it stops before end. Returns its first
 * character. */
static char *
put_decimal(char *end, uint64_t value, unsigned digits)
{
	bool print = false;

	for (; digits > 0; digits--, value /= 10) {
		print = print || value % 10 != 0;
		if (print)
			*--end = (char)('0' + value % 10);
	}
	if (print)
		*--end = '.';
	do
		*--end = (char)('0' + value % 10);
	while (value /= 10);
	return end;
}

static char *
put_text(char *end, const char *text)
{
	return memcpy(end - strlen(text), text, strlen(text));
}

static char *
put_small(char *end, uint64_t ns)
{
	if (ns < 1000)
		return put_decimal(put_text(end, "ns"), ns, 0);
	if (ns < 1000000)
		return put_decimal(put_text(end, "\xc2\xb5s"), ns, 3);
	return put_decimal(put_text(end, "ms"), ns, 6);
}

void
duration_format(int64_t ns, char ret[DURATION_SIZE])
{
	uint64_t left = ns < 0 ? -(uint64_t)ns : (uint64_t)ns;
	char buf[DURATION_SIZE], *end = buf + sizeof buf - 1, *at;

	*end = '\0';
	if (left == 0) {
		at = put_text(end, "0s");
	} else if (left < NS_PER_S) {
		at = put_small(end, left);
	} else {
		uint64_t minutes = left / (60 * NS_PER_S);

		at = put_decimal(put_text(end, "s"), left % (60 * NS_PER_S), 9);
		if (minutes > 0)
			at = put_decimal(put_text(at, "m"), minutes % 60, 0);
		if (minutes >= 60)
			at = put_decimal(put_text(at, "h"), minutes / 60, 0);
	}
	if (ns < 0)
		*--at = '-';
	(void)strcpy(ret, at);
}
