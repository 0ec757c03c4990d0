// SPDX-License-Identifier: Apache-2.0
/* test_hb_rpc.c: heads of net/rpc, byte for byte, and the ends of objects. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "heartbeat/hb_rpc.h"
#include "tests/unit/unit.h"

/* Returns the end that is found, whole and byte by byte; -1 if it is not in the data. */
static ssize_t
end_of(const void *data, size_t len)
{
	struct hb_rpc_scan whole = { 0 }, pieces = { 0 };
	bool done = false, done2 = false;
	ssize_t n = hb_rpc_scan(&whole, data, len, &done);

	for (size_t i = 0; i < len && !done2; i++) {
		ssize_t r = hb_rpc_scan(&pieces, (const uint8_t *)data + i, 1, &done2);

		if (n < 0 && r < 0)
			return n;
		ck_assert_int_eq(r, 1);
	}
	ck_assert_int_eq(done, done2);
	return done ? n : -1;
}

#define ENDS(bytes) ck_assert_int_eq(end_of(bytes "\xc0\xc0", sizeof bytes + 1), sizeof bytes - 1)

START_TEST(every_kind_of_object_ends_where_it_does)
{
	ENDS("\x00");
	ENDS("\x7f");
	ENDS("\xe0");
	ENDS("\xc0");
	ENDS("\xc2");
	ENDS("\xcc\x01");
	ENDS("\xcd\x01\x02");
	ENDS("\xce\x01\x02\x03\x04");
	ENDS("\xcf\x01\x02\x03\x04\x05\x06\x07\x08");
	ENDS("\xd0\x01");
	ENDS("\xd1\x01\x02");
	ENDS("\xd2\x01\x02\x03\x04");
	ENDS("\xd3\x01\x02\x03\x04\x05\x06\x07\x08");
	ENDS("\xca\x01\x02\x03\x04");
	ENDS("\xcb\x01\x02\x03\x04\x05\x06\x07\x08");
	ENDS("\xa0");
	ENDS("\xa3"
	     "abc");
	ENDS("\xd9\x02"
	     "ab");
	ENDS("\xda\x00\x02"
	     "ab");
	ENDS("\xdb\x00\x00\x00\x02"
	     "ab");
	ENDS("\xc4\x00");
	ENDS("\xc5\x00\x01"
	     "a");
	ENDS("\xc6\x00\x00\x00\x01"
	     "a");
	ENDS("\xc7\x02\x05"
	     "ab");
	ENDS("\xc8\x00\x02\x05"
	     "ab");
	ENDS("\xc9\x00\x00\x00\x02\x05"
	     "ab");
	ENDS("\xd4\x05"
	     "a");
	ENDS("\xd5\x05"
	     "ab");
	ENDS("\xd6\x05"
	     "abcd");
	ENDS("\xd7\x05"
	     "abcdefgh");
	ENDS("\xd8\x05"
	     "abcdefghijklmnop");
	ENDS("\x80");
	ENDS("\x90");
	ENDS("\x81\xa1"
	     "k\x91\x01");
	ENDS("\xdc\x00\x02\x01\x81\x01\x02");
	ENDS("\xdd\x00\x00\x00\x01\x01");
	ENDS("\xde\x00\x01\x01\x02");
	ENDS("\xdf\x00\x00\x00\x01\x01\x90");
}
END_TEST

START_TEST(what_is_cut_does_not_end)
{
	static const char object[] = "\x83\xa1"
				     "k\x92\x01\xcb"
				     "12345678\xda\x00\x02"
				     "ab\xc0\x02\x03";

	for (size_t n = 0; n < sizeof object - 1; n++)
		ck_assert_int_eq(end_of(object, n), -1);
	ck_assert_int_eq(end_of(object, sizeof object - 1), sizeof object - 1);
}
END_TEST

START_TEST(what_is_no_msgpack_is_refused)
{
	static uint8_t maps[400];

	ck_assert_int_eq(end_of("\x92\x01\xc1", 3), -EBADMSG);
	/* Each announces four thousand million entries: none of them costs memory, but together
	 * they exceed the limit. */
	for (size_t i = 0; i + 5 <= sizeof maps; i += 5)
		memcpy(maps + i, "\xdf\xff\xff\xff\xff", 5);
	ck_assert_int_lt(end_of(maps, sizeof maps), 0);
	ck_assert_int_eq(end_of("\xdb\xff\xff\xff\xff", 5), -1);
}
END_TEST

START_TEST(a_request_has_the_servers_bytes)
{
	static const char want[] = "\x82\xa3Seq\x01\xadServiceMethod\xadNode.Register";
	struct hb_buf b = { 0 };

	hb_rpc_put_request(&b, "Node.Register", 1);
	ck_assert_uint_eq(b.len, sizeof want - 1);
	ck_assert_mem_eq(b.data, want, sizeof want - 1);
	hb_buf_done(&b);
}
END_TEST

START_TEST(an_answer_comes_back_as_it_was_put)
{
	struct hb_rpc_head head;
	struct hb_buf b = { 0 };
	char error[200];
	bool done = false;
	struct hb_rpc_scan s = { 0 };
	ssize_t n;

	memset(error, 'e', sizeof error);
	error[sizeof error - 1] = '\0';
	hb_rpc_put_answer(&b, "CSI.NodeDetachVolume", UINT64_MAX, error);
	ck_assert_uint_eq(b.data[b.len - 1], 0x80);
	n = hb_rpc_scan(&s, b.data, b.len, &done);
	ck_assert_int_eq(n, (ssize_t)b.len - 1);
	ck_assert_int_eq(hb_rpc_get_head(b.data, (size_t)n, &head), 0);
	ck_assert_uint_eq(head.seq, UINT64_MAX);
	ck_assert_str_eq(head.method, "CSI.NodeDetachVolume");
	ck_assert_str_eq(head.error, error);
	hb_buf_done(&b);

	hb_rpc_put_answer(&b, "A.B", 3, "");
	ck_assert_mem_eq(b.data,
	    "\x83\xa5"
	    "Error\xa0\xa3Seq\x03\xadServiceMethod\xa3"
	    "A.B",
	    b.len);
	hb_buf_done(&b);
	hb_rpc_put_accept(&b, "");
	ck_assert_uint_eq(b.len, 8);
	ck_assert_mem_eq(b.data,
	    "\x81\xa5"
	    "Error\xa0",
	    8);
	hb_buf_done(&b);
}
END_TEST

START_TEST(heads_are_read_however_they_are_written)
{
	static const char any[] = "\x84\xc4\x0dServiceMethod\xd9\x03"
				  "A.B\xa3Seq\xd1\x00\x07"
				  "\xa4more\x92\x01\xc0\xa5"
				  "Error\xc0";
	static const char opener[] = "\x81\xa6Method\xaf"
				     "FileSystem.Logs";
	struct hb_rpc_head head;

	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)any, sizeof any - 1, &head), 0);
	ck_assert_str_eq(head.method, "A.B");
	ck_assert_uint_eq(head.seq, 7);
	ck_assert_str_eq(head.error, "");
	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)opener, sizeof opener - 1, &head), 0);
	ck_assert_str_eq(head.method, "FileSystem.Logs");
}
END_TEST

START_TEST(heads_that_are_none_are_refused)
{
	static char deep[1000], longest[300] = "\x81\xa6Method\xda\x01\x00";
	struct hb_rpc_head head;

	memset(deep, 0x91, sizeof deep - 1);
	memset(longest + 11, 'm', 256);
	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)"\x90", 1, &head), -EBADMSG);
	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)"", 0, &head), -EBADMSG);
	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)deep, sizeof deep, &head), -EBADMSG);
	ck_assert_int_eq(hb_rpc_get_head((const uint8_t *)longest, 267, &head), -EBADMSG);
}
END_TEST

START_TEST(of_a_beats_answer_ttl_and_servers_are_taken)
{
	static const char answer[] =
	    "\x85\xacHeartbeatTTL\xd3\x00\x00\x00\x04\xa8\x17\xc8\x00\xa8NumNodes\x03"
	    "\xa7Servers\x93\x82\xb0RPCAdvertiseAddr\xaf"
	    "127.0.0.1:46470\xaa"
	    "Datacenter\xa3"
	    "dc1\x80\xc0\xa5Index\x00\xa7"
	    "EvalIDs\xc0";
	struct hb_rpc_node node;

	ck_assert_int_eq(hb_rpc_get_node((const uint8_t *)answer, sizeof answer - 1, &node), 0);
	ck_assert_int_eq(node.ttl_ns, 20000000000);
	ck_assert_int_eq(node.n_nodes, 3);
	ck_assert_uint_eq(node.n_servers, 1);
	ck_assert_str_eq(node.servers[0], "127.0.0.1:46470");
}
END_TEST

/* Sixteen million empty lists in 16 MB, followed by the field that is read. */
START_TEST(reading_a_large_answer_takes_no_memory)
{
	static const uint8_t head[] = "\x82\xa1x\xdd\x01\x00\x00\x00",
			     tail[] = "\xacHeartbeatTTL\x07";
	const size_t n = 1 << 24, len = sizeof head - 1 + n + sizeof tail - 1;
	uint8_t *data = malloc(len);
	static struct hb_rpc_node node;
	struct rusage before, after;

	ck_assert_ptr_nonnull(data);
	memset(data, 0x90, len);
	memcpy(data, head, sizeof head - 1);
	memcpy(data + sizeof head - 1 + n, tail, sizeof tail - 1);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &before), 0);
	ck_assert_int_eq(hb_rpc_get_node(data, len, &node), 0);
	ck_assert_int_eq(getrusage(RUSAGE_SELF, &after), 0);
	ck_assert_int_eq(node.ttl_ns, 7);
	ck_assert_msg(after.ru_maxrss - before.ru_maxrss < 16 * 1024, "%ld KB more",
	    after.ru_maxrss - before.ru_maxrss);
	free(data);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, every_kind_of_object_ends_where_it_does);
	tcase_add_test(tc, what_is_cut_does_not_end);
	tcase_add_test(tc, what_is_no_msgpack_is_refused);
	tcase_add_test(tc, a_request_has_the_servers_bytes);
	tcase_add_test(tc, an_answer_comes_back_as_it_was_put);
	tcase_add_test(tc, heads_are_read_however_they_are_written);
	tcase_add_test(tc, heads_that_are_none_are_refused);
	tcase_add_test(tc, of_a_beats_answer_ttl_and_servers_are_taken);
	tcase_add_test(tc, reading_a_large_answer_takes_no_memory);
}

int
main(void)
{
	return unit_run("hb_rpc", add);
}
