// SPDX-License-Identifier: Apache-2.0
/* test_payload.c: payloads of dispatches in Snappy's format, invalid ones, and the names of their
 * files. */
#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "model/payload.h"
#include "tests/unit/unit.h"

START_TEST(what_is_packed_is_unpacked)
{
	static const size_t sizes[] = { 0, 1, 59, 60, 61, 127, 128, 255, 256, 4096, PAYLOAD_MAX };
	static uint8_t data[PAYLOAD_MAX], packed[PAYLOAD_PACKED_SIZE(PAYLOAD_MAX)],
	    out[PAYLOAD_MAX];
	size_t len = 1;

	for (size_t i = 0; i < sizeof data; i++)
		data[i] = (uint8_t)(i * 7 + i / 251);
	for (size_t i = 0; i < ELEMENTSOF(sizes); i++) {
		size_t n = payload_pack(data, sizes[i], packed);

		ck_assert_uint_le(n, PAYLOAD_PACKED_SIZE(sizes[i]));
		ck_assert_int_eq(payload_unpack(packed, n, out, &len), 0);
		ck_assert_uint_eq(len, sizes[i]);
		ck_assert_mem_eq(out, data, len);
		/* One byte less or more is invalid. */
		ck_assert_int_eq(payload_unpack(packed, n - 1, out, &len), -EBADMSG);
	}
}
END_TEST

#define BYTES(...) (const uint8_t[]){ __VA_ARGS__ }, sizeof((const uint8_t[]){ __VA_ARGS__ })

static const struct {
	const uint8_t *packed;
	size_t len;
	int r;
	const char *text;
} forms[] = {
	{ BYTES(3, 2 << 2, 'a', 'b', 'c'), 0, "abc" },
	{ BYTES(3, 60 << 2, 2, 'a', 'b', 'c'), 0, "abc" },
	{ BYTES(3, 62 << 2, 2, 0, 0, 'a', 'b', 'c'), 0, "abc" },
	{ BYTES(3, 63 << 2, 2, 0, 0, 0, 'a', 'b', 'c'), 0, "abc" },
	/* copies: 4 bytes from 2 back, overlapping; 5 bytes from 3 back, with distances of 2 and 4
	 * bytes */
	{ BYTES(6, 1 << 2, 'x', 'y', 0 << 2 | 1, 2), 0, "xyxyxy" },
	{ BYTES(8, 2 << 2, 'a', 'b', 'c', 4 << 2 | 2, 3, 0), 0, "abcabcab" },
	{ BYTES(8, 2 << 2, 'a', 'b', 'c', 4 << 2 | 3, 3, 0, 0, 0), 0, "abcabcab" },
	{ BYTES(0x83, 0x00, 2 << 2, 'a', 'b', 'c'), 0, "abc" },
	{ BYTES(0), 0, "" },
	{ BYTES(), -EBADMSG, NULL },
	{ BYTES(0x80), -EBADMSG, NULL },
	{ BYTES(0xff, 0xff, 0xff, 0xff, 0xff, 0xff), -EBADMSG, NULL },
	{ BYTES(0x81, 0x80, 0x01), -E2BIG, NULL }, /* 16385 */
	{ BYTES(3, 1 << 2, 'a', 'b'), -EBADMSG, NULL },
	{ BYTES(1, 1 << 2, 'a', 'b'), -EBADMSG, NULL },
	{ BYTES(5, 1 << 2, 'a', 'b', 0 << 2 | 1, 1), -EBADMSG, NULL }, /* a copy that is too long */
	{ BYTES(6, 1 << 2, 'a', 'b', 0 << 2 | 1, 3), -EBADMSG, NULL }, /* before the start */
	{ BYTES(6, 1 << 2, 'a', 'b', 0 << 2 | 1, 0), -EBADMSG, NULL },
	{ BYTES(6, 1 << 2, 'a', 'b', 0 << 2 | 1), -EBADMSG, NULL },
	{ BYTES(4, 63 << 2, 0xff, 0xff, 0xff, 0xff, 'a'), -EBADMSG, NULL },
	{ BYTES(4, 62 << 2, 0), -EBADMSG, NULL },
};

START_TEST(forms_of_snappy)
{
	uint8_t out[PAYLOAD_MAX];
	size_t len = 99;

	ck_assert_int_eq(payload_unpack(forms[_i].packed, forms[_i].len, out, &len), forms[_i].r);
	ck_assert_uint_eq(len, forms[_i].text ? strlen(forms[_i].text) : 99);
	if (forms[_i].text)
		ck_assert_mem_eq(out, forms[_i].text, len);
}
END_TEST

START_TEST(files)
{
	static const char *const good[] = { "in.txt", "a/b/c.json", "A-1_2.x" };
	static const char *const none[] = { "", "/", "/in", "in/", "a//b", "../x", "a/../b", "./a",
		".a", "a b", "a\nb" };
	struct err e = { 0 };
	char path[NAME_PATH_MAX + 2];

	for (size_t i = 0; i < ELEMENTSOF(good); i++)
		ck_assert_msg(payload_file_check(good[i], &e) == 0, "%s", good[i]);
	for (size_t i = 0; i < ELEMENTSOF(none); i++) {
		ck_assert_msg(payload_file_check(none[i], &e) == -EINVAL, "%s", none[i]);
		ck_assert_msg(strstr(e.msg, "cannot be a file in"), "%s", e.msg);
	}
	for (size_t i = 0; i < sizeof path; i++)
		path[i] = i % 100 == 99 ? '/' : 'a';
	path[NAME_PATH_MAX] = '\0';
	ck_assert_int_eq(payload_file_check(path, &e), 0);
	path[NAME_PATH_MAX] = 'a';
	path[NAME_PATH_MAX + 1] = '\0';
	ck_assert_int_eq(payload_file_check(path, &e), -EINVAL);
	memset(path, 'a', NAME_BYTES_MAX + 1);
	path[NAME_BYTES_MAX + 1] = '\0';
	ck_assert_int_eq(payload_file_check(path, &e), -EINVAL);
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, what_is_packed_is_unpacked);
	tcase_add_loop_test(tc, forms_of_snappy, 0, (int)ELEMENTSOF(forms));
	tcase_add_test(tc, files);
}

int
main(void)
{
	return unit_run("payload", add_tests);
}
