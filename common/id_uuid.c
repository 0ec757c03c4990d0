// SPDX-License-Identifier: Apache-2.0
/* id_uuid.c: parses, makes and compares ids in the form of the API and the database. Runs in:
 * supervisor, cli. */
#include <string.h>

#include "common/id.h"

bool
id_equal(const struct id *a, const struct id *b)
{
	return memcmp(a->b, b->b, sizeof a->b) == 0;
}

static int
digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	return -1;
}

bool
id_from_hex(const char *text, struct id *ret)
{
	struct id id;

	for (size_t i = 0; i < ID_BYTES; i++) {
		int high = digit_value(text[2 * i]);
		int low = high < 0 ? -1 : digit_value(text[2 * i + 1]);

		if (low < 0)
			return false;
		id.b[i] = (uint8_t)(high << 4 | low);
	}
	if (text[2 * ID_BYTES] != '\0')
		return false;
	*ret = id;
	return true;
}

struct id
id_random_uuid(void)
{
	struct id id = id_random();

	id.b[6] = (uint8_t)((id.b[6] & 0x0f) | 0x40);
	id.b[8] = (uint8_t)((id.b[8] & 0x3f) | 0x80);
	return id;
}

bool
id_from_uuid(const char *text, struct id *ret)
{
	char hex[ID_HEX_SIZE];
	size_t n = 0;

	if (strlen(text) != ID_UUID_SIZE - 1)
		return false;
	for (size_t i = 0; i < ID_UUID_SIZE - 1; i++) {
		bool dash = i == 8 || i == 13 || i == 18 || i == 23;

		if (dash != (text[i] == '-'))
			return false;
		if (!dash)
			hex[n++] = text[i];
	}
	hex[n] = '\0';
	return id_from_hex(hex, ret);
}
