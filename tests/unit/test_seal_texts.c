// SPDX-License-Identifier: Apache-2.0
/* test_seal_texts.c: lists of texts come back from sealed values. Runs in: unit tests. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "common/path.h"
#include "model/engine/table.h"
#include "supervisor/core/seal_texts.h"
#include "tests/unit/base_directory.h"

struct object {
	char *name;
	struct string_map map;
};
#define S object
static const struct field object_fields[] = {
	F_STRING(name, "Name"),
	F_STRING_MAP(map, "Map"),
};
static MODEL_TYPE(object, object_fields, .name = "object");
#undef S

static void
object_done(struct object *v)
{
	model_done(&object_type, v);
}

static void
put_all(struct seal_texts *texts, const void *obj)
{
	const struct object *v = obj;

	seal_put_text(texts, v->name);
	seal_put_map(texts, &v->map);
	seal_put_text(texts, NULL);
}

static void
take_all(void *obj, const char *at, size_t left)
{
	struct object *v = obj;

	str_set(&v->name, seal_take_text(&at, &left));
	seal_take_map(&at, &left, &v->map);
}

START_TEST(texts_come_back)
{
	struct err e = { 0 };
	struct seal *seal = seal_new(base, &e);
	struct object v = { 0 }, back = { 0 };
	struct sealed sealed = { 0 };

	str_set(&v.name, "p");
	string_map_set(&v.map, "", "no key");
	string_map_set(&v.map, "empty", "");
	string_map_set(&v.map, "lines", "a\nb");
	ck_assert_int_eq(seal_close_texts(seal, "a", put_all, &v, &sealed, &e), 0);
	ck_assert(!seal_open_texts(seal, "b", sealed.bytes, sealed.len, take_all, &back));
	ck_assert(seal_open_texts(seal, "a", sealed.bytes, sealed.len, take_all, &back));
	ck_assert_str_eq(back.name, "p");
	ck_assert_uint_eq(back.map.n, 3);
	ck_assert_str_eq(str(string_map_get(&back.map, "")), "no key");
	ck_assert_str_eq(str(string_map_get(&back.map, "empty")), "");
	ck_assert_str_eq(str(string_map_get(&back.map, "lines")), "a\nb");
	object_done(&v);
	object_done(&back);
	sealed_done(&sealed);
	seal_free(seal);
}
END_TEST

static void
put_nothing(struct seal_texts *texts, const void *obj)
{
}

START_TEST(nothing_is_sealed_as_nothing)
{
	struct err e = { 0 };
	struct seal *seal = seal_new(base, &e);
	struct sealed sealed = { 0 };

	ck_assert_int_eq(seal_close_texts(seal, "a", put_nothing, NULL, &sealed, &e), 0);
	ck_assert_ptr_null(sealed.bytes);
	seal_free(seal);
}
END_TEST

/* The bytes are no list of texts: what is whole is taken, and nothing beyond the end. */
START_TEST(a_text_that_does_not_end_is_not_taken)
{
	static const char bytes[] = { 'k', '\0', 'v', '\0', 'x', '\0', 'y' };
	struct object v = { 0 };
	const char *at = mem_alloc(sizeof bytes), *first = at;
	size_t left = sizeof bytes;

	memcpy((char *)(uintptr_t)at, bytes, sizeof bytes);
	seal_take_map(&at, &left, &v.map);
	ck_assert_uint_eq(v.map.n, 1);
	ck_assert_str_eq(v.map.v[0].value, "v");
	object_done(&v);
	free((char *)(uintptr_t)first);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, make_base, remove_base);
	tcase_add_test(tc, texts_come_back);
	tcase_add_test(tc, nothing_is_sealed_as_nothing);
	tcase_add_test(tc, a_text_that_does_not_end_is_not_taken);
}

int
main(void)
{
	return unit_run("seal_texts", add);
}
