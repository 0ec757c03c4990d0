/* SPDX-License-Identifier: Apache-2.0 */
/* go_print.h: prints values as Go's package fmt does. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_GO_PRINT_H
#define DROVER_TEMPLATE_GO_PRINT_H

#include "template/go_value.h"

/* %v of one value. */
void go_print_value(struct text *out, struct go_value v);
/* fmt.Sprint: a space between two values of which none is a string. */
void go_print(struct text *out, const struct go_value *args, size_t n);
/* fmt.Sprintln: a space between all, and a newline. */
void go_println(struct text *out, const struct go_value *args, size_t n);
/* fmt.Sprintf */
void go_printf(
    struct text *out, const char *format, size_t len, const struct go_value *args, size_t n);

/* The inside of these, for go_print*.c. */
struct go_printer {
	struct text *out;
	struct go_value arg; /* that is printed, for wrong verbs */
	int width, prec;
	bool has_width, has_prec, minus, plus, sharp, space, zero;
	bool plus_v, sharp_v; /* %+v, %#v */
	bool wrong;           /* a wrong verb is described */
};

void go_printer_clear(struct go_printer *p);
void go_print_verb(struct go_printer *p, struct go_value v, uint32_t verb);

/* What go_format.c writes: a text with its padding; and values by verb, false for a wrong verb. */
void go_pad(struct go_printer *p, const char *s, size_t len);
bool go_format_bool(struct go_printer *p, bool b, uint32_t verb);
bool go_format_int(struct go_printer *p, uint64_t u, bool negative_possible, uint32_t verb);
bool go_format_float(struct go_printer *p, double f, uint32_t verb);
bool go_format_string(struct go_printer *p, const char *s, size_t len, uint32_t verb);

#endif
