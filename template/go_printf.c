/* SPDX-License-Identifier: Apache-2.0 */
/* go_printf.c: reads formats. Runs in: template-renderer. */
#include <string.h>

#include "template/go_print.h"
#include "template/go_text.h"

#define NUMBER_MAX 1000000 /* of a width, precision or argument's number */

struct reader {
	struct go_printer p;
	const char *format;
	size_t at, end;
	const struct go_value *args;
	size_t n, next; /* arguments, and the next one */
	bool good;      /* the argument's number is right */
	bool reordered; /* a number was given */
};

void
go_printer_clear(struct go_printer *p)
{
	*p = (struct go_printer){ .out = p->out };
}

/* Reads digits at r->at. False if there are none or too many. */
static bool
read_number(struct reader *r, int *ret)
{
	bool some = false;

	*ret = 0;
	for (; r->at < r->end && r->format[r->at] >= '0' && r->format[r->at] <= '9'; r->at++) {
		if (*ret > NUMBER_MAX) {
			*ret = 0;
			r->at = r->end;
			return false;
		}
		*ret = 10 * *ret + (r->format[r->at] - '0');
		some = true;
	}
	return some;
}

/* [3]: the number of the next argument. Returns whether there is one. */
static bool
read_index(struct reader *r)
{
	const char *from = r->format + r->at, *close;
	size_t start = r->at;
	int number;
	bool ok;

	if (r->at >= r->end || *from != '[')
		return false;
	r->reordered = true;
	close = r->end - r->at >= 3 ? memchr(from, ']', r->end - r->at) : NULL;
	if (!close) {
		r->at++;
		r->good = false;
		return false;
	}
	r->at++;
	ok = read_number(r, &number) && r->format + r->at == close;
	r->at = start + (size_t)(close - from) + 1;
	if (ok && number >= 1 && (size_t)number <= r->n) {
		r->next = (size_t)number - 1;
		return true;
	}
	r->good = false;
	return ok;
}

/* The argument of a "*". */
static bool
take_number(struct reader *r, int *ret)
{
	const struct go_value *v = r->next < r->n ? &r->args[r->next] : NULL;

	*ret = 0;
	if (!v)
		return false;
	r->next++;
	if ((go_kind(*v) != GO_INT && go_kind(*v) != GO_UINT) ||
	    (go_kind(*v) == GO_UINT && v->u > NUMBER_MAX) || v->i > NUMBER_MAX ||
	    v->i < -NUMBER_MAX)
		return false;
	*ret = (int)v->i;
	return true;
}

static void
read_flags(struct reader *r)
{
	for (; r->at < r->end; r->at++) {
		char c = r->format[r->at];

		if (c == '#')
			r->p.sharp = true;
		else if (c == '0')
			r->p.zero = true;
		else if (c == '+')
			r->p.plus = true;
		else if (c == '-')
			r->p.minus = true;
		else if (c == ' ')
			r->p.space = true;
		else
			return;
	}
}

/* Returns whether an argument's number stands before what follows. */
static bool
read_width(struct reader *r)
{
	bool index = read_index(r);

	if (r->at < r->end && r->format[r->at] == '*') {
		r->at++;
		r->p.has_width = take_number(r, &r->p.width);
		if (!r->p.has_width)
			text_add(r->p.out, "%!(BADWIDTH)");
		if (r->p.width < 0) {
			r->p.width = -r->p.width;
			r->p.minus = true;
			r->p.zero = false;
		}
		return false;
	}
	r->p.has_width = read_number(r, &r->p.width);
	if (index && r->p.has_width)
		r->good = false;
	return index;
}

static bool
read_precision(struct reader *r, bool index)
{
	if (r->at >= r->end || r->format[r->at] != '.')
		return index;
	r->at++;
	if (index)
		r->good = false;
	index = read_index(r);
	if (r->at < r->end && r->format[r->at] == '*') {
		r->at++;
		r->p.has_prec = take_number(r, &r->p.prec);
		if (r->p.prec < 0) {
			r->p.prec = 0;
			r->p.has_prec = false;
		}
		if (!r->p.has_prec)
			text_add(r->p.out, "%!(BADPREC)");
		return false;
	}
	r->p.has_prec = read_number(r, &r->p.prec);
	if (!r->p.has_prec) {
		r->p.prec = 0;
		r->p.has_prec = true;
	}
	return index;
}

static void
add_problem(struct reader *r, uint32_t verb, const char *what)
{
	text_add(r->p.out, "%!");
	go_add_char(r->p.out, verb);
	text_add(r->p.out, what);
}

/* After "%". Returns false at the end of the format. */
static bool
format_one(struct reader *r)
{
	uint32_t verb;
	size_t len;
	bool index;

	r->good = true;
	go_printer_clear(&r->p);
	read_flags(r);
	index = read_precision(r, read_width(r));
	if (!index)
		(void)read_index(r);
	if (r->at >= r->end) {
		text_add(r->p.out, "%!(NOVERB)");
		return false;
	}
	verb = go_char(r->format + r->at, r->end - r->at, &len);
	r->at += len;
	if (verb == '%') {
		text_add(r->p.out, "%");
	} else if (!r->good) {
		add_problem(r, verb, "(BADINDEX)");
	} else if (r->next >= r->n) {
		add_problem(r, verb, "(MISSING)");
	} else {
		if (verb == 'v' || verb == 'w') {
			r->p.sharp_v = r->p.sharp;
			r->p.sharp = false;
			r->p.plus_v = r->p.plus;
			r->p.plus = false;
		}
		go_print_verb(&r->p, r->args[r->next++], verb);
	}
	return true;
}

static void
add_extra(struct reader *r)
{
	go_printer_clear(&r->p);
	text_add(r->p.out, "%!(EXTRA ");
	for (size_t i = r->next; i < r->n; i++) {
		if (i > r->next)
			text_add(r->p.out, ", ");
		if (r->args[i].type) {
			text_add(r->p.out, r->args[i].type->name);
			text_add(r->p.out, "=");
		}
		go_print_verb(&r->p, r->args[i], 'v');
	}
	text_add(r->p.out, ")");
}

void
go_printf(struct text *out, const char *format, size_t len, const struct go_value *args, size_t n)
{
	struct reader r = {
		.p = { .out = out }, .format = format, .end = len, .args = args, .n = n
	};
	const char *percent;

	while (r.at < len) {
		arena_step(out->arena, 1);
		percent = memchr(format + r.at, '%', len - r.at);
		if (!percent) {
			text_bytes(out, format + r.at, len - r.at);
			break;
		}
		text_bytes(out, format + r.at, (size_t)(percent - format) - r.at);
		r.at = (size_t)(percent - format) + 1;
		if (!format_one(&r))
			break;
	}
	if (!r.reordered && r.next < n)
		add_extra(&r);
}
