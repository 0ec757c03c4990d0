// SPDX-License-Identifier: Apache-2.0
/* percent.c: percent-encoding, of parts of a URL. Runs in: supervisor, cli. */
#include "model/engine/percent.h"

#include <errno.h>
#include <string.h>

void
percent_encode(struct text *t, const char *s)
{
	for (; *s; s++) {
		unsigned char c = (unsigned char)*s;

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-._~", c))
			text_append(t, s, 1);
		else
			text_printf(t, "%%%02X", c);
	}
}

static int
hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return -1;
}

int
percent_decode(char *s, bool plus)
{
	char *to = s;

	for (; *s; s++) {
		if (*s == '%') {
			int high = hex_digit(s[1]), low = high < 0 ? -1 : hex_digit(s[2]);

			if (low < 0)
				return -EINVAL;
			if (high == 0 && low == 0)
				return -EILSEQ;
			*to++ = (char)(high << 4 | low);
			s += 2;
		} else {
			*to++ = plus && *s == '+' ? ' ' : *s;
		}
	}
	*to = '\0';
	return 0;
}
