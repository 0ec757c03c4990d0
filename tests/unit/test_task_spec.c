// SPDX-License-Identifier: Apache-2.0
/* test_task_spec.c: a spec is accepted if the writer made it; anything else is rejected. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/spec.h"
#include "tests/unit/unit.h"

static const struct {
	enum spec_tag tag;
	const char *text;
	size_t len;
} entries[] = {
	{ SPEC_COMMAND, "/bin/true", 9 },
	{ SPEC_ARG, "", 0 },
	{ SPEC_ARG, "abc", 3 },
	{ SPEC_ENV, "A=b", 3 },
	{ SPEC_FILE, "644 -1 0 local/a/b", 18 },
	{ SPEC_FILE_DATA, "a\0b\0\0", 5 },
	{ SPEC_CWD, "/", 1 },
};

static void
write_all(struct spec_writer *w)
{
	for (size_t i = 0; i < ELEMENTSOF(entries); i++)
		spec_add(w, entries[i].tag, entries[i].text, entries[i].len);
}

/* Returns 0 at the end, or the error of a step; reads every text up to its NUL. */
static int
step_all(const void *spec, size_t size, size_t *ret_n)
{
	struct spec_entry entry;
	size_t at = 0;
	int r;

	*ret_n = 0;
	while ((r = spec_next(spec, size, &at, &entry)) == 1) {
		ck_assert_int_eq(entry.text[entry.len], '\0');
		(*ret_n)++;
	}
	return r;
}

START_TEST(what_was_written_is_read)
{
	struct spec_writer w = { 0 };
	struct spec_entry entry;
	cleanup_close int fd = -1;
	const void *map;
	size_t len, at = 0;

	write_all(&w);
	fd = spec_finish(&w);
	ck_assert_int_ge(fd, 0);
	ck_assert_ptr_null(w.buf);
	ck_assert_int_eq(fd_memfd_map(fd, SPEC_BYTES_MAX, &map, &len), 0);
	for (size_t i = 0; i < ELEMENTSOF(entries); i++) {
		ck_assert_int_eq(spec_next(map, len, &at, &entry), 1);
		ck_assert_uint_eq(entry.tag, entries[i].tag);
		ck_assert_uint_eq(entry.len, entries[i].len);
		ck_assert_mem_eq(entry.text, entries[i].text, entry.len + 1);
	}
	ck_assert_int_eq(spec_next(map, len, &at, &entry), 0);
	(void)munmap((void *)(uintptr_t)map, len);
}
END_TEST

/* In a heap block of exactly that size, so that ASan detects a read beyond it. */
START_TEST(cut_at_each_length)
{
	struct spec_writer w = { 0 };
	size_t n, whole = 0;

	write_all(&w);
	for (size_t len = 0; len < w.len; len++) {
		cleanup_free char *cut = malloc(len ? len : 1);
		int r;

		memcpy(cut, w.buf, len);
		r = step_all(cut, len, &n);
		ck_assert(r == 0 || r == -EBADMSG);
		whole += r == 0;
	}
	/* Only prefixes that end between two entries are valid: one per entry, and the empty
	 * one. */
	ck_assert_uint_eq(whole, ELEMENTSOF(entries));
	free(w.buf);
}
END_TEST

START_TEST(each_bit_turned)
{
	struct spec_writer w = { 0 };
	size_t n;

	write_all(&w);
	for (size_t bit = 0; bit < w.len * 8; bit++) {
		int r;

		w.buf[bit / 8] ^= (char)(1 << bit % 8);
		r = step_all(w.buf, w.len, &n);
		ck_assert(r == 0 || r == -EBADMSG);
		w.buf[bit / 8] ^= (char)(1 << bit % 8);
	}
	ck_assert_int_eq(step_all(w.buf, w.len, &n), 0);
	ck_assert_uint_eq(n, ELEMENTSOF(entries));
	free(w.buf);
}
END_TEST

static const struct {
	uint32_t tag, len;
	char text[8];
	size_t size;
	int want;
} raw[] = {
	{ SPEC_COMMAND, 3, "abc", 12, 1 },
	{ SPEC_COMMAND, 3, "ab", 12, -EBADMSG }, /* NUL inside */
	{ SPEC_FILE_DATA, 3, "ab", 12, 1 },
	{ SPEC_COMMAND, 2, "ab\0x", 12, -EBADMSG }, /* padding that is not zero */
	{ SPEC_COMMAND, 4, "abcd", 12, -EBADMSG },  /* no byte left for the NUL */
	{ SPEC_COMMAND, 4, "abcd", 16, 1 },
	{ 0, 0, "", 12, -EBADMSG },
	{ SPEC_OPTION + 1, 0, "", 12, -EBADMSG },
	{ SPEC_COMMAND, UINT32_MAX, "abc", 12, -EBADMSG }, /* len + NUL + padding wraps */
	{ SPEC_COMMAND, UINT32_MAX - 4, "abc", 12, -EBADMSG },
	{ SPEC_COMMAND, SPEC_BYTES_MAX + 1, "abc", 12, -EBADMSG },
};

START_TEST(single_entries)
{
	struct {
		uint32_t tag, len;
		char text[8];
	} spec = { raw[_i].tag, raw[_i].len, "" };
	struct spec_entry entry;
	size_t at = 0;

	memcpy(spec.text, raw[_i].text, sizeof spec.text);
	ck_assert_int_eq(spec_next(&spec, raw[_i].size, &at, &entry), raw[_i].want);
}
END_TEST

START_TEST(no_writer_goes_beyond_the_limit)
{
	cleanup_free char *big = calloc(1, SPEC_BYTES_MAX + 16);
	struct spec_writer w = { 0 };

	spec_add(&w, SPEC_FILE_DATA, big, SPEC_BYTES_MAX);
	ck_assert_int_eq(spec_finish(&w), -E2BIG);
	spec_add(&w, SPEC_FILE_DATA, big, SPEC_BYTES_MAX - 64);
	ck_assert_int_eq(w.failed, 0);
	spec_add(&w, SPEC_FILE_DATA, big, 64);
	spec_add(&w, SPEC_ARG, "x", 1); /* sticky: nothing is added after one that did not fit */
	ck_assert_int_eq(spec_finish(&w), -E2BIG);
}
END_TEST

static void
check_next(
    const void *map, size_t size, size_t *at, enum spec_tag tag, const char *text, size_t len)
{
	struct spec_entry entry;

	ck_assert_int_eq(spec_next(map, size, at, &entry), 1);
	ck_assert_uint_eq(entry.tag, tag);
	ck_assert_uint_eq(entry.len, len);
	ck_assert(memcmp(entry.text, text, len) == 0 && entry.text[len] == '\0');
}

/* Two long files between short entries, at each padding. */
START_TEST(a_long_text_is_not_copied)
{
	const size_t len = (1 << 20) + (size_t)_i;
	const struct spec_file file = { .mode = 0640, .uid = 1, .gid = -1, .path = "alloc/x" };
	cleanup_free char *data = malloc(len);
	struct spec_writer w = { 0 };
	cleanup_close int fd = -1;
	const void *map;
	size_t size, at = 0;

	memset(data, 'd', len);
	spec_add_str(&w, SPEC_COMMAND, "true");
	spec_add_file(&w, &file, data, len);
	spec_add_file(&w, &file, data, len);
	spec_add_str(&w, SPEC_ARG, "last");
	ck_assert_uint_lt(w.size, 1000);
	fd = spec_finish(&w);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_memfd_map(fd, SPEC_BYTES_MAX, &map, &size), 0);
	check_next(map, size, &at, SPEC_COMMAND, "true", 4);
	for (int i = 0; i < 2; i++) {
		check_next(map, size, &at, SPEC_FILE, "640 1 -1 alloc/x", 16);
		check_next(map, size, &at, SPEC_FILE_DATA, data, len);
	}
	check_next(map, size, &at, SPEC_ARG, "last", 4);
	ck_assert_uint_eq(at, size);
	(void)munmap((void *)(uintptr_t)map, size);
}
END_TEST

START_TEST(a_writer_without_files)
{
	const struct spec_file file = { .path = "local/x" };
	struct spec_writer w = { .no_files = true };

	spec_add_file(&w, &file, "x", 1);
	ck_assert_uint_eq(w.len, 0);
	spec_writer_done(&w);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, what_was_written_is_read);
	tcase_add_test(tc, cut_at_each_length);
	tcase_add_test(tc, each_bit_turned);
	tcase_add_loop_test(tc, single_entries, 0, (int)ELEMENTSOF(raw));
	tcase_add_test(tc, no_writer_goes_beyond_the_limit);
	tcase_add_loop_test(tc, a_long_text_is_not_copied, 0, 4);
	tcase_add_test(tc, a_writer_without_files);
}

int
main(void)
{
	return unit_run("task_spec", add);
}
