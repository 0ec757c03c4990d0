// SPDX-License-Identifier: Apache-2.0
/* fuzz_lis_conn.c: a client of the listener, at the address of health { } or of the API, and what
 * the supervisor answers by a link. The first byte chooses the address, the second is the size of
 * the pieces that come at once; a line "--" separates the client's bytes from the supervisor's. */
#include "listener/lis.h"
#include "tests/fuzz/fuzz_lis.h"

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const char *text = (const char *)data + 2, *end, *mark;
	const struct in6_addr from = { 0 };
	struct lis_door *d;
	size_t step, len;
	int ends[2];

	if (size < 3)
		return 0;
	if (supervisor < 0)
		begin();
	d = &lis.doors[data[0] % LISTEN_USES];
	step = (size_t)data[1] * 16 + 1;
	end = text + size - 2;
	mark = memmem(text, size - 2, "\n--\n", 4);
	len = mark ? (size_t)(mark + 1 - text) : size - 2;
	mark = mark ? mark + 4 : end;
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
	lis_conn_new(&lis, d, ends[1], &from, "192.0.2.7:4711");
	for (size_t at = 0; at < len; at += step) {
		(void)send(ends[0], text + at, len - at < step ? len - at : step, MSG_NOSIGNAL);
		run_events();
		give_links(mark, (size_t)(end - mark));
		read_all(ends[0]);
		HOLDS(d->n_conns <= 1 && lis.n_relays <= d->n_conns);
	}
	(void)close(ends[0]);
	end_all(d);
	return 0;
}
