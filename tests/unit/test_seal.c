// SPDX-License-Identifier: Apache-2.0
/* test_seal.c: sealed values open only unchanged, in their row and with their key. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/path.h"
#include "supervisor/core/seal.h"
#include "tests/unit/base_directory.h"

#define TEXT      "the secret of a volume"
#define KEY_BYTES 64

static char key_path[80], old_path[80];
static struct err e;

static void
begin(void)
{
	make_base();
	(void)snprintf(key_path, sizeof key_path, "%s/seal.key", base);
	(void)snprintf(old_path, sizeof old_path, "%s/seal.key.old", base);
	e = (struct err){ 0 };
}

static struct sealed
close_text(struct seal *s, const char *about, const char *text)
{
	struct sealed sealed = { 0 };

	ck_assert_int_eq(seal_close(s, about, text, strlen(text), &sealed, &e), 0);
	return sealed;
}

static bool
opens(const struct seal *s, const char *about, const struct sealed *sealed, const char *text)
{
	uint8_t *plain = NULL;
	size_t len = 0;
	int r = seal_open(s, about, sealed->bytes, sealed->len, &plain, &len);

	if (r == 0)
		ck_assert(len == strlen(text) && memcmp(plain, text, len) == 0);
	else
		ck_assert_int_eq(r, -EBADMSG);
	seal_wipe(plain, len);
	return r == 0;
}

static void
write_key(const char *bytes, size_t len)
{
	int fd = open(key_path, O_WRONLY | O_CREAT | O_TRUNC, 0600);

	ck_assert_int_eq(write(fd, bytes, len), (ssize_t)len);
	(void)close(fd);
}

START_TEST(a_value_opens_in_its_row_only)
{
	struct seal *s = seal_new(base, &e);
	struct sealed sealed = close_text(s, "volume a", TEXT), empty = close_text(s, "x", "");

	ck_assert_int_eq(e.code, 0);
	ck_assert(opens(s, "volume a", &sealed, TEXT));
	ck_assert(opens(s, "x", &empty, ""));
	ck_assert(!opens(s, "volume b", &sealed, TEXT));
	ck_assert_ptr_null(memmem(sealed.bytes, sealed.len, TEXT, 4));
	sealed_done(&sealed);
	sealed_done(&empty);
	seal_free(s);
}
END_TEST

START_TEST(a_value_is_never_sealed_to_the_same_bytes)
{
	struct seal *s = seal_new(base, &e);
	struct sealed a = close_text(s, "a", TEXT), b = close_text(s, "a", TEXT);

	ck_assert_uint_eq(a.len, b.len);
	ck_assert_int_ne(memcmp(a.bytes, b.bytes, a.len), 0);
	sealed_done(&a);
	sealed_done(&b);
	seal_free(s);
}
END_TEST

START_TEST(a_changed_value_does_not_open)
{
	struct seal *s = seal_new(base, &e);
	struct sealed sealed = close_text(s, "a", TEXT);

	for (size_t i = 0; i < sealed.len; i++) {
		sealed.bytes[i] ^= 1;
		ck_assert(!opens(s, "a", &sealed, TEXT));
		sealed.bytes[i] ^= 1;
	}
	while (sealed.len-- > 0)
		ck_assert(!opens(s, "a", &sealed, TEXT));
	sealed_done(&sealed);
	seal_free(s);
}
END_TEST

START_TEST(the_key_is_a_private_file_that_is_made_when_needed)
{
	struct seal *s = seal_new(base, &e), *next;
	struct sealed sealed;
	struct stat st;

	ck_assert_int_lt(stat(key_path, &st), 0);
	sealed = close_text(s, "a", TEXT);
	ck_assert_int_eq(stat(key_path, &st), 0);
	ck_assert_uint_eq(st.st_mode & 07777, 0600);
	ck_assert_int_eq(st.st_size, KEY_BYTES);
	next = seal_new(base, &e);
	ck_assert(opens(next, "a", &sealed, TEXT));
	ck_assert_int_eq(e.code, 0);
	sealed_done(&sealed);
	seal_free(s);
	seal_free(next);
}
END_TEST

START_TEST(another_key_opens_nothing)
{
	struct seal *s = seal_new(base, &e), *none, *other;
	struct sealed sealed = close_text(s, "a", TEXT);
	char key[KEY_BYTES] = "another key";

	ck_assert_int_eq(unlink(key_path), 0);
	none = seal_new(base, &e);
	ck_assert(!opens(none, "a", &sealed, TEXT));
	write_key(key, sizeof key);
	other = seal_new(base, &e);
	ck_assert(!opens(other, "a", &sealed, TEXT));
	ck_assert_int_eq(e.code, 0);
	sealed_done(&sealed);
	seal_free(s);
	seal_free(none);
	seal_free(other);
}
END_TEST

START_TEST(a_file_that_is_no_key_is_kept)
{
	static const size_t sizes[] = { 0, KEY_BYTES - 1, KEY_BYTES + 1 };
	char bytes[KEY_BYTES + 1] = "no key";
	struct sealed sealed;
	struct stat st;
	struct seal *s;

	write_key(bytes, sizes[_i]);
	s = seal_new(base, &e);
	ck_assert_int_eq(e.code, -EBADMSG);
	ck_assert_ptr_nonnull(strstr(e.msg, "seal.key is not a key of drover, which has 64 bytes"));
	sealed = close_text(s, "a", TEXT);
	ck_assert(opens(s, "a", &sealed, TEXT));
	ck_assert_int_eq(stat(old_path, &st), 0);
	ck_assert_uint_eq((size_t)st.st_size, sizes[_i]);
	sealed_done(&sealed);
	seal_free(s);
}
END_TEST

START_TEST(an_earlier_old_key_is_not_replaced)
{
	static const char *const names[] = { "seal.key.old", "seal.key.old2", "seal.key.old3" };
	struct sealed sealed;
	struct stat st;
	struct seal *s;

	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		write_key("no key", i + 1);
		s = seal_new(base, &e);
		sealed = close_text(s, "a", TEXT);
		sealed_done(&sealed);
		seal_free(s);
	}
	for (size_t i = 0; i < ELEMENTSOF(names); i++) {
		(void)snprintf(old_path, sizeof old_path, "%s/%s", base, names[i]);
		ck_assert_int_eq(stat(old_path, &st), 0);
		ck_assert_uint_eq((size_t)st.st_size, i + 1);
	}
}
END_TEST

START_TEST(nothing_is_sealed_with_a_key_that_is_not_on_disk)
{
	struct seal *s = seal_new("/proc/self", &e);
	struct sealed sealed = { 0 };

	ck_assert_int_eq(e.code, 0);
	ck_assert_int_lt(seal_close(s, "a", TEXT, strlen(TEXT), &sealed, &e), 0);
	ck_assert_ptr_nonnull(strstr(e.msg, "make /proc/self/seal.key, which encrypts secrets"));
	ck_assert_ptr_null(sealed.bytes);
	seal_free(s);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, begin, remove_base);
	tcase_add_test(tc, a_value_opens_in_its_row_only);
	tcase_add_test(tc, a_value_is_never_sealed_to_the_same_bytes);
	tcase_add_test(tc, a_changed_value_does_not_open);
	tcase_add_test(tc, the_key_is_a_private_file_that_is_made_when_needed);
	tcase_add_test(tc, another_key_opens_nothing);
	tcase_add_loop_test(tc, a_file_that_is_no_key_is_kept, 0, 3);
	tcase_add_test(tc, an_earlier_old_key_is_not_replaced);
	tcase_add_test(tc, nothing_is_sealed_with_a_key_that_is_not_on_disk);
}

int
main(void)
{
	return unit_run("seal", add);
}
