// SPDX-License-Identifier: Apache-2.0
/* fuzz_http_answer.c: a service's answer to a check, whole and in pieces, and its redirect. The
 * first byte is the size of the pieces. */
#include <stdlib.h>
#include <string.h>

#include "common/http_answer.h"
#include "supervisor/service/http_target.h"
#include "tests/fuzz/fuzz.h"

static int
read_in(struct http_answer *a, const char *data, size_t len, size_t step)
{
	struct err e = { 0 };
	int r = 0;

	http_answer_init(a, false);
	for (size_t at = 0; at < len && r == 0; at += step)
		r = http_answer_feed(a, data + at, len - at < step ? len - at : step, &e);
	return r == 0 ? http_answer_end(a, &e) : r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct http_answer whole, pieces;
	struct http_target t = { 0 };
	struct err e = { 0 };
	int r;

	if (size < 2)
		return 0;
	r = read_in(&whole, (const char *)data + 1, size - 1, size);
	HOLDS(read_in(&pieces, (const char *)data + 1, size - 1, (size_t)data[0] + 1) == r);
	HOLDS(r == 1 || r < 0);
	if (r < 0)
		return 0;
	HOLDS(whole.status == pieces.status && strcmp(whole.body, pieces.body) == 0);
	HOLDS(whole.status >= 100 && whole.body_len <= HTTP_BODY_KEPT);
	if (!whole.location[0])
		return 0;
	HOLDS(check_addr_parse("192.0.2.1", 80, &t.addr, &e) == 0);
	HOLDS(http_target_set_path(&t, "/a/b", &e) == 0);
	if (http_target_follow(&t, whole.location, &e) == 0)
		HOLDS(t.path[0] == '/' && strlen(t.path) < HTTP_TARGET_MAX &&
		      !strpbrk(t.path, " \r\n\t"));
	return 0;
}
