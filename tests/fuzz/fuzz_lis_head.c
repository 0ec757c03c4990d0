// SPDX-License-Identifier: Apache-2.0
/* fuzz_lis_head.c: a request of the listener's client, and an answer of the supervisor, whole and
 * in pieces. The first byte is the size of the pieces. */
#include <string.h>

#include "listener/lis_answer.h"
#include "listener/lis_gate.h"
#include "tests/fuzz/fuzz.h"

static void
read_request(const char *data, size_t len, bool api)
{
	struct lis_head head = { 0 }, again;
	struct lis_question q;
	const char *why = NULL;
	int r = lis_head_parse(data, len, api, &head, &why);

	HOLDS(r == 1 || r == 0 || (r <= -400 && r > -600 && why));
	HOLDS(r != 0 || len < LIS_HEAD_MAX);
	if (r != 1)
		return;
	HOLDS(head.len <= len && head.target_len > 0 && (api || head.target_len <= LIS_TARGET_MAX));
	HOLDS(memcmp(data + head.len - 4, "\r\n\r\n", 4) == 0);
	HOLDS(!memchr(data, '\0', head.len));
	/* A complete head is complete with its last byte, whatever follows. */
	HOLDS(lis_head_parse(data, head.len, api, &again, &why) == 1 && again.len == head.len);
	HOLDS(lis_head_parse(data, head.len - 1, api, &again, &why) == 0);
	HOLDS(
	    !head.token || (head.token >= data && head.token + head.token_len <= data + head.len));
	HOLDS(api || !head.writes);
	if (!api && lis_gate_check(&head, &q, &why) == 0)
		HOLDS(q.kind < LIS_KINDS && strlen(q.target) < sizeof q.target &&
		      strspn(q.target, "/?&=abcdefghijklmnopqrstuvwxyz1") == strlen(q.target));
}

static int
read_answer(struct lis_reader *reader, const char *data, size_t len, size_t step)
{
	struct err e = { 0 };
	int r = 0;

	for (size_t at = 0; at < len && r == 0; at += step)
		r = lis_reader_feed(reader, data + at, len - at < step ? len - at : step, &e);
	return r;
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct lis_reader whole, pieces;
	const char *text = (const char *)data + 1;
	int r;

	if (size < 2)
		return 0;
	read_request(text, size - 1, false);
	read_request(text, size - 1, true);
	r = read_answer(&whole, text, size - 1, size);
	if (r == 1) {
		HOLDS(read_answer(&pieces, text, size - 1, (size_t)data[0] + 1) == 1);
		HOLDS(whole.answer->status == pieces.answer->status &&
		      whole.answer->len == pieces.answer->len &&
		      memcmp(whole.answer->body, pieces.answer->body, whole.answer->len) == 0);
		HOLDS(!strpbrk(whole.answer->type, "\r\n"));
	}
	lis_reader_done(&whole);
	lis_reader_done(&pieces);
	HOLDS(lis_answers_held() == 0);
	return 0;
}
