// SPDX-License-Identifier: Apache-2.0
/* id_uuid.c: ids as the API writes and makes them. Runs in: supervisor, cli. */
#include <string.h>

#include "common/id.h"

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
