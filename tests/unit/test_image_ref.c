// SPDX-License-Identifier: Apache-2.0
/* test_image_ref.c: spellings of images. What is accepted and what it means is as the reference
 * grammar of the distribution project has it. */
#include "common/image_ref.h"

#include <errno.h>
#include <string.h>

#include "tests/unit/unit.h"

#define HEX64 "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

static const struct {
	const char *text, *formatted;
} valid[] = {
	{ "redis", "docker.io/library/redis:latest" },
	{ "redis:7-alpine", "docker.io/library/redis:7-alpine" },
	{ "docker.io/redis", "docker.io/library/redis:latest" },
	{ "docker.io/library/redis", "docker.io/library/redis:latest" },
	{ "index.docker.io/a/b:1", "docker.io/a/b:1" },
	{ "hashicorp/http-echo", "docker.io/hashicorp/http-echo:latest" },
	{ "https://quay.io/a/b", "quay.io/a/b:latest" },
	{ "docker://quay.io/a/b", "quay.io/a/b:latest" },
	{ "ghcr.io/a/b/c:v1.2_3", "ghcr.io/a/b/c:v1.2_3" },
	{ "localhost/a", "localhost/a:latest" },
	{ "localhost:5000/a", "localhost:5000/a:latest" },
	{ "127.0.0.1:5000/a:b", "127.0.0.1:5000/a:b" },
	{ "[::1]:5000/a", "[::1]:5000/a:latest" },
	{ "[fd00::1]/a", "[fd00::1]/a:latest" },
	{ "Registry/a", "Registry/a:latest" },
	{ "REGISTRY.example/a", "REGISTRY.example/a:latest" },
	{ "a__b/c-----d.e_f", "docker.io/a__b/c-----d.e_f:latest" },
	{ "a@sha256:" HEX64, "docker.io/library/a@sha256:" HEX64 },
	{ "a:7@sha256:" HEX64, "docker.io/library/a@sha256:" HEX64 },
	{ "x.y/a@sha512:" HEX64 HEX64, "x.y/a@sha512:" HEX64 HEX64 },
	{ HEX64 ":tag", "docker.io/library/" HEX64 ":tag" },
	{ "a:_", "docker.io/library/a:_" },
};

START_TEST(accept)
{
	struct image_ref ref;
	struct err e = { 0 };
	char text[IMAGE_REF_SIZE];

	ck_assert_msg(
	    image_ref_parse(valid[_i].text, &ref, &e) == 0, "%s: %s", valid[_i].text, e.msg);
	image_ref_format(&ref, text);
	ck_assert_str_eq(text, valid[_i].formatted);
	/* The one spelling stands for itself. */
	ck_assert_int_eq(image_ref_parse(text, &ref, &e), 0);
	image_ref_format(&ref, text);
	ck_assert_str_eq(text, valid[_i].formatted);
}
END_TEST

static const struct {
	const char *text, *word;
} wrong[] = {
	{ "", "repository" },
	{ ":1", "repository" },
	{ "a/", "repository" },
	{ "/a", "repository" },
	{ "a//b", "repository" },
	{ "Redis", "repository" },
	{ "a/Redis", "repository" },
	{ "a..b/c", "registry" },
	{ "a/b..c", "repository" },
	{ "a___b", "repository" },
	{ "-a", "repository" },
	{ "a-", "repository" },
	{ "a b", "repository" },
	{ "../../etc", "registry" },
	{ "a.b:x/c", "registry" },
	{ "a.b:99999/c", "registry" },
	{ "a.b:/c", "registry" },
	{ "a:b/c:1", "registry" },
	{ "-x.y/a", "registry" },
	{ "[::1/a", "registry" },
	{ "[::1]x/a", "registry" },
	{ "a:", "tag" },
	{ "a:-x", "tag" },
	{ "a:.x", "tag" },
	{ "a:b c", "tag" },
	{ "a@", "digest" },
	{ "a@sha256:" HEX64 "0", "digest" },
	{ "a@sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef", "digest" },
	{ "a@md5:d41d8cd98f00b204e9800998ecf8427e", "digest" },
	{ HEX64, "id of an image" },
	{ "a\nb", "repository" },
};

START_TEST(refuse)
{
	struct image_ref ref = { .tag = "untouched" };
	struct err e = { 0 };

	ck_assert_msg(image_ref_parse(wrong[_i].text, &ref, &e) == -EINVAL, "%s", wrong[_i].text);
	ck_assert_msg(strstr(e.msg, wrong[_i].word), "%s: %s", wrong[_i].text, e.msg);
	ck_assert_str_eq(ref.tag, "untouched");
}
END_TEST

START_TEST(lengths)
{
	char text[2 * IMAGE_REF_SIZE];
	struct image_ref ref;
	struct err e = { 0 };

	for (size_t n = 1; n < sizeof text; n++) {
		memset(text, 'a', n);
		text[n] = '\0';
		ck_assert_int_eq(
		    image_ref_parse(text, &ref, &e), n <= 237 && n != 64 ? 0 : -EINVAL);
	}
	for (size_t n = 1; n < 200; n++) {
		(void)strcpy(text, "a:");
		memset(text + 2, 'b', n);
		text[2 + n] = '\0';
		ck_assert_int_eq(image_ref_parse(text, &ref, &e), n <= 128 ? 0 : -EINVAL);
	}
}
END_TEST

static void
add_tests(TCase *t)
{
	tcase_add_loop_test(t, accept, 0, (int)(sizeof valid / sizeof *valid));
	tcase_add_loop_test(t, refuse, 0, (int)(sizeof wrong / sizeof *wrong));
	tcase_add_test(t, lengths);
}

int
main(void)
{
	return unit_run("image_ref", add_tests);
}
