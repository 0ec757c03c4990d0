/* SPDX-License-Identifier: Apache-2.0 */
/* go_time.c: times and durations. Runs in: template-renderer. */
#include "template/go_time.h"

#include <stdio.h>
#include <string.h>
#include <time.h>

#include "template/go_function.h"

#define NS_PER_S  1000000000LL
#define DAY_NAMES "Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"
#define MONTH_NAMES                                                                                \
	"January", "February", "March", "April", "May", "June", "July", "August", "September",     \
	    "October", "November", "December"

static const char *const day_names[] = { DAY_NAMES };
static const char *const month_names[] = { MONTH_NAMES };

/* The parts of a layout. A longer one that begins as a shorter one is before it. */
enum part {
	NO_PART,
	LONG_MONTH,
	MONTH,
	NUMBER_MONTH,
	ZERO_MONTH,
	LONG_DAY_NAME,
	DAY_NAME,
	DAY,
	SPACE_DAY,
	ZERO_DAY,
	SPACE_DAY_OF_YEAR,
	ZERO_DAY_OF_YEAR,
	HOUR,
	HOUR_12,
	ZERO_HOUR_12,
	MINUTE,
	ZERO_MINUTE,
	SECOND,
	ZERO_SECOND,
	LONG_YEAR,
	YEAR,
	PM,
	LOWER_PM,
	ZONE,
	Z, /* an offset that is Z in UTC */
	OFFSET,
	OFFSET_COLON,
	OFFSET_SECONDS,
	OFFSET_COLON_SECONDS,
	OFFSET_SHORT,
};

static const struct {
	const char *text;
	enum part part;
} parts[] = {
	{ "January", LONG_MONTH },
	{ "Jan", MONTH },
	{ "Monday", LONG_DAY_NAME },
	{ "Mon", DAY_NAME },
	{ "MST", ZONE },
	{ "01", ZERO_MONTH },
	{ "02", ZERO_DAY },
	{ "03", ZERO_HOUR_12 },
	{ "04", ZERO_MINUTE },
	{ "05", ZERO_SECOND },
	{ "06", YEAR },
	{ "002", ZERO_DAY_OF_YEAR },
	{ "15", HOUR },
	{ "1", NUMBER_MONTH },
	{ "2006", LONG_YEAR },
	{ "2", DAY },
	{ "_2006", NO_PART }, /* "_" and the year */
	{ "_2", SPACE_DAY },
	{ "__2", SPACE_DAY_OF_YEAR },
	{ "3", HOUR_12 },
	{ "4", MINUTE },
	{ "5", SECOND },
	{ "PM", PM },
	{ "pm", LOWER_PM },
	{ "-070000", OFFSET_SECONDS },
	{ "-07:00:00", OFFSET_COLON_SECONDS },
	{ "-0700", OFFSET },
	{ "-07:00", OFFSET_COLON },
	{ "-07", OFFSET_SHORT },
	{ "Z070000", Z },
	{ "Z07:00:00", Z },
	{ "Z0700", Z },
	{ "Z07:00", Z },
	{ "Z07", Z },
};

/* The part at s; *ret_len its length, also for what is none. */
static enum part
find_part(const char *s, size_t len, size_t *ret_len)
{
	for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
		size_t n = strlen(parts[i].text);

		if (len < n || memcmp(s, parts[i].text, n) != 0)
			continue;
		/* "Jan" is no part of a word such as "January" has been found to be none of. */
		if (parts[i].part == MONTH && len > n && s[n] >= 'a' && s[n] <= 'z')
			continue;
		*ret_len = parts[i].part == NO_PART ? 1 : n;
		return parts[i].part;
	}
	*ret_len = 1;
	return NO_PART;
}

static void
add_number(struct text *out, const char *fmt, int number)
{
	char buf[24];

	(void)snprintf(buf, sizeof buf, fmt, number);
	text_add(out, buf);
}

static void
add_part(struct text *out, enum part part, const struct tm *t)
{
	int hour_12 = t->tm_hour % 12 == 0 ? 12 : t->tm_hour % 12;
	const char *month = month_names[t->tm_mon], *day = day_names[t->tm_wday];

	switch (part) {
	case LONG_MONTH:
		text_add(out, month);
		break;
	case MONTH:
		text_bytes(out, month, 3);
		break;
	case LONG_DAY_NAME:
		text_add(out, day);
		break;
	case DAY_NAME:
		text_bytes(out, day, 3);
		break;
	case NUMBER_MONTH:
		add_number(out, "%d", t->tm_mon + 1);
		break;
	case ZERO_MONTH:
		add_number(out, "%02d", t->tm_mon + 1);
		break;
	case DAY:
		add_number(out, "%d", t->tm_mday);
		break;
	case SPACE_DAY:
		add_number(out, "%2d", t->tm_mday);
		break;
	case ZERO_DAY:
		add_number(out, "%02d", t->tm_mday);
		break;
	case SPACE_DAY_OF_YEAR:
		add_number(out, "%3d", t->tm_yday + 1);
		break;
	case ZERO_DAY_OF_YEAR:
		add_number(out, "%03d", t->tm_yday + 1);
		break;
	case HOUR:
		add_number(out, "%02d", t->tm_hour);
		break;
	case HOUR_12:
		add_number(out, "%d", hour_12);
		break;
	case ZERO_HOUR_12:
		add_number(out, "%02d", hour_12);
		break;
	case MINUTE:
		add_number(out, "%d", t->tm_min);
		break;
	case ZERO_MINUTE:
		add_number(out, "%02d", t->tm_min);
		break;
	case SECOND:
		add_number(out, "%d", t->tm_sec);
		break;
	case ZERO_SECOND:
		add_number(out, "%02d", t->tm_sec);
		break;
	case LONG_YEAR:
		add_number(out, "%04d", t->tm_year + 1900);
		break;
	case YEAR:
		add_number(out, "%02d", t->tm_year % 100);
		break;
	case PM:
		text_add(out, t->tm_hour >= 12 ? "PM" : "AM");
		break;
	case LOWER_PM:
		text_add(out, t->tm_hour >= 12 ? "pm" : "am");
		break;
	case ZONE:
		text_add(out, "UTC");
		break;
	case Z:
		text_add(out, "Z");
		break;
	case OFFSET:
		text_add(out, "+0000");
		break;
	case OFFSET_COLON:
		text_add(out, "+00:00");
		break;
	case OFFSET_SECONDS:
		text_add(out, "+000000");
		break;
	case OFFSET_COLON_SECONDS:
		text_add(out, "+00:00:00");
		break;
	case OFFSET_SHORT:
		text_add(out, "+00");
		break;
	default:
		break;
	}
}

/* .000 or .999, a fraction of so many digits, if no digit follows; nines leave out zeros at the
 * end. Returns its length, or 0. */
static size_t
add_fraction(struct text *out, const char *s, size_t len, int ns)
{
	size_t n = 1;
	char digits[16];

	if ((*s != '.' && *s != ',') || len < 2 || (s[1] != '0' && s[1] != '9'))
		return 0;
	while (n < len && s[n] == s[1])
		n++;
	if (n < len && s[n] >= '0' && s[n] <= '9')
		return 0;
	(void)snprintf(digits, sizeof digits, "%c%09d", *s, ns);
	for (size_t shown = n < 10 ? n : 10;; shown--) {
		if (s[1] == '9' && shown > 1 && digits[shown - 1] == '0')
			continue;
		if (s[1] == '0' || shown > 1)
			text_bytes(out, digits, shown);
		break;
	}
	for (size_t i = 10; s[1] == '0' && i < n; i++)
		text_add(out, "0");
	return n;
}

void
go_format_time(struct text *out, int64_t ns, const char *layout, size_t len)
{
	int64_t seconds = ns / NS_PER_S - (ns % NS_PER_S < 0);
	time_t at = seconds;
	struct tm t;
	size_t n;

	(void)gmtime_r(&at, &t);
	text_add(out, "");
	arena_count_bytes(out->arena, len);
	for (size_t i = 0; i < len; i += n) {
		enum part part = find_part(layout + i, len - i, &n);

		if (part != NO_PART) {
			add_part(out, part, &t);
			continue;
		}
		n = add_fraction(out, layout + i, len - i, (int)(ns - seconds * NS_PER_S));
		if (n == 0) {
			text_bytes(out, layout + i, 1);
			n = 1;
		}
	}
}

/* 1h2m3.5s; below a second in ms, µs or ns. */
void
go_format_duration(struct text *out, int64_t ns)
{
	static const struct {
		uint64_t unit;
		const char *name;
	} units[] = { { 1000000000, "s" }, { 1000000, "ms" }, { 1000, "\xc2\xb5s" }, { 1, "ns" } };
	uint64_t u = ns < 0 ? -(uint64_t)ns : (uint64_t)ns, whole, fraction;
	char digits[16];
	size_t i = 0, n;

	if (u == 0) {
		text_add(out, "0s");
		return;
	}
	text_add(out, ns < 0 ? "-" : "");
	if (u / 3600000000000 > 0)
		text_add(out,
		    arena_printf(out->arena, "%lluh", (unsigned long long)(u / 3600000000000)));
	if (u / 60000000000 > 0)
		text_add(out,
		    arena_printf(out->arena, "%llum", (unsigned long long)(u / 60000000000 % 60)));
	while (u < units[i].unit)
		i++;
	whole = i == 0 ? u / units[i].unit % 60 : u / units[i].unit;
	fraction = u % units[i].unit * (units[0].unit / units[i].unit);
	text_add(out, arena_printf(out->arena, "%llu", (unsigned long long)whole));
	(void)snprintf(digits, sizeof digits, ".%09llu", (unsigned long long)fraction);
	for (n = strlen(digits); n > 1 && digits[n - 1] == '0'; n--)
		;
	text_bytes(out, digits, n > 1 ? n : 0);
	text_add(out, units[i].name);
}

struct go_value
go_time(struct arena *a, int64_t ns)
{
	struct go_value v = { .type = &go_type_time, .fields = arena_new(a, struct go_value) };

	*v.fields = go_int64(ns);
	return v;
}

int64_t
go_time_ns(struct go_value time)
{
	return time.fields->i;
}

static struct go_value
time_text(struct arena *a, const struct go_value *v)
{
	static const char layout[] = "2006-01-02 15:04:05.999999999 -0700 MST";
	struct text t = { .arena = a };

	go_format_time(&t, go_time_ns(*v), layout, strlen(layout));
	return go_text_value(&t);
}

static struct go_value
duration_text(struct arena *a, const struct go_value *v)
{
	struct text t = { .arena = a };

	go_format_duration(&t, v->i);
	return go_text_value(&t);
}

static struct go_value
fn_format(struct go_call *c)
{
	struct text t = { .arena = c->arena };

	go_format_time(&t, go_time_ns(c->self), c->args[0].s, c->args[0].len);
	return go_text_value(&t);
}

static struct go_value
fn_string(struct go_call *c)
{
	return c->self.type->string(c->arena, &c->self);
}

static struct go_value
fn_unix(struct go_call *c)
{
	int64_t ns = go_time_ns(c->self);

	return go_int64(ns / NS_PER_S - (ns % NS_PER_S < 0));
}

static struct go_value
fn_unix_milli(struct go_call *c)
{
	return go_int64(go_time_ns(c->self) / 1000000);
}

static struct go_value
fn_unix_nano(struct go_call *c)
{
	return go_int64(go_time_ns(c->self));
}

static struct go_value
fn_same(struct go_call *c)
{
	return c->self;
}

static struct tm
broken_down(struct go_call *c)
{
	time_t at = fn_unix(c).i;
	struct tm t;

	(void)gmtime_r(&at, &t);
	return t;
}

static struct go_value
fn_year(struct go_call *c)
{
	return go_int(broken_down(c).tm_year + 1900);
}

static struct go_value
fn_day(struct go_call *c)
{
	return go_int(broken_down(c).tm_mday);
}

static struct go_value
fn_hour(struct go_call *c)
{
	return go_int(broken_down(c).tm_hour);
}

static struct go_value
fn_minute(struct go_call *c)
{
	return go_int(broken_down(c).tm_min);
}

static struct go_value
fn_second(struct go_call *c)
{
	return go_int(broken_down(c).tm_sec);
}

static struct go_value
fn_seconds(struct go_call *c)
{
	return go_float((double)c->self.i / 1e9);
}

static const struct go_field time_fields[] = { { "ns", &go_type_int64, true } };
static const struct go_function time_methods[] = { { "Format", "s", fn_format },
	{ "String", "", fn_string }, { "Unix", "", fn_unix }, { "UnixMilli", "", fn_unix_milli },
	{ "UnixNano", "", fn_unix_nano }, { "UTC", "", fn_same }, { "Local", "", fn_same },
	{ "Year", "", fn_year }, { "Day", "", fn_day }, { "Hour", "", fn_hour },
	{ "Minute", "", fn_minute }, { "Second", "", fn_second } };
static const struct go_function duration_methods[] = { { "String", "", fn_string },
	{ "Seconds", "", fn_seconds } };

const struct go_type go_type_time = { .kind = GO_STRUCT,
	.name = "time.Time",
	.fields = time_fields,
	.n_fields = 1,
	.methods = time_methods,
	.n_methods = sizeof time_methods / sizeof time_methods[0],
	.string = time_text };
const struct go_type go_type_duration = { .kind = GO_INT,
	.name = "time.Duration",
	.methods = duration_methods,
	.n_methods = sizeof duration_methods / sizeof duration_methods[0],
	.string = duration_text };
