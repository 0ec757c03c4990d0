// SPDX-License-Identifier: Apache-2.0
/* decimal.c: decimal texts of binary numbers. Runs in: supervisor, job-parser, cli. */
#include "common/decimal.h"

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

size_t
decimal_size(const char *digits, long exponent)
{
	return strlen(digits) + (size_t)labs(exponent) + 4;
}

char *
decimal_write(char *buf, const char *digits, long exponent)
{
	bool negative = *digits == '-';
	size_t n = strlen(digits += negative), whole = exponent > 0 ? (size_t)exponent : 0;
	char *to = buf;

	while (n > 1 && digits[n - 1] == '0')
		n--;
	if (negative)
		*to++ = '-';
	if (exponent <= 0) {
		to = mempcpy(to, "0.", 2);
		to = (char *)memset(to, '0', (size_t)-exponent) + -exponent;
		to = mempcpy(to, digits, n);
	} else if (whole >= n) {
		to = mempcpy(to, digits, n);
		to = (char *)memset(to, '0', whole - n) + (whole - n);
	} else {
		to = mempcpy(to, digits, whole);
		*to++ = '.';
		to = mempcpy(to, digits + whole, n - whole);
	}
	*to = '\0';
	return buf;
}

char *
real_format(double d, char buf[REAL_TEXT_SIZE])
{
	char text[40], digits[40], *e;
	int n = 0;
	long exponent;

	do
		(void)snprintf(text, sizeof text, "%.*e", n, d);
	while (strtod(text, NULL) != d && ++n < 17);
	e = strchr(text, 'e');
	exponent = strtol(e + 1, NULL, 10);
	*e = '\0';
	if (d != 0 && (exponent < -6 || exponent >= 21)) {
		(void)snprintf(buf, REAL_TEXT_SIZE, "%se%+ld", text, exponent);
		return buf;
	}
	e = digits;
	for (const char *p = text; *p; p++)
		if (*p != '.')
			*e++ = *p;
	*e = '\0';
	return decimal_write(buf, digits, exponent + 1);
}
