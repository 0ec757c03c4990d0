// SPDX-License-Identifier: Apache-2.0
/* nomad_clock.c: compares this machine's clock with the servers'. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_clock.h"

#include <jansson.h>
#include <string.h>

#include "common/base64.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"

/* Returns the claims of a JWT, the second of its three parts: JSON as base64url without padding.
 * NULL if it has another form. */
static json_t *
read_claims(const char *jwt)
{
	const char *from = strchr(jwt, '.'), *to = from ? strchr(from + 1, '.') : NULL;
	cleanup_free char *text = NULL, *data = NULL;
	size_t len;

	if (!to)
		return NULL;
	len = (size_t)(to - ++from);
	text = mem_printf("%.*s%.*s", (int)len, from, (int)((4 - len % 4) % 4), "===");
	for (char *c = text; *c; c++)
		*c = *c == '-' ? '+' : *c == '_' ? '/' : *c;
	data = mem_alloc(strlen(text) / 4 * 3 + 1);
	if (base64_decode(text, data, &len) < 0)
		return NULL;
	return json_loadb(data, len, 0, NULL);
}

static int64_t
boot_s(void)
{
	return (int64_t)(clock_boot_ns() / NS_PER_S);
}

void
nomad_clock_note(struct nomad *n, const char *jwt)
{
	cleanup_json json_t *claims = read_claims(jwt);
	int64_t issued_s = json_integer_value(json_object_get(claims, "iat"));

	if (issued_s > 0)
		n->servers_boot_s = issued_s - boot_s();
}

int64_t
nomad_clock_ahead_s(const struct sup *sup)
{
	const struct nomad *n = nomad_of(sup->source);

	return n->servers_boot_s ? clock_real_ns() / NS_PER_S - boot_s() - n->servers_boot_s : 0;
}
