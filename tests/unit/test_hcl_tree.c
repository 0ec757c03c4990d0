// SPDX-License-Identifier: Apache-2.0
/* test_hcl_tree.c: the tree of a text in the older syntax of HCL, which configurations have. */
#include <string.h>

#include "hcl/hcl_tree.h"
#include "tests/unit/unit.h"

static struct hcl *h;

/* Returns the root of the text's tree, or NULL. The caller frees h. */
static const struct hcl_node *
parse(const char *text,
    const struct hcl_node *(*read)(struct hcl *h, const struct hcl_source *source))
{
	const struct hcl_source source = { "h", text, strlen(text) };

	h = hcl_new(&hcl_tree_limits);
	return read(h, &source);
}

START_TEST(heredocs)
{
	static const char text[] = "a = <<EOT\n  one\n  $${two}\nEOT\n"
				   "b = <<-EOT\n    one\n\n      two\n    EOT\n"
				   "c = <<X\nX\n";
	const struct hcl_node *root = parse(text, hcl_tree_parse);

	ck_assert_ptr_nonnull(root);
	ck_assert_str_eq(root->first->text, "  one\n  ${two}\n");
	ck_assert_str_eq(root->first->next->text, "one\n\n  two\n");
	ck_assert_str_eq(root->first->next->next->text, "");
	hcl_free(h);
}
END_TEST

START_TEST(sequences_as_text)
{
	static const char text[] = "a = \"${b} $${c} %{d}\"\ne = <<X\n${f}\nX\n";
	const struct hcl_node *root = parse(text, hcl_tree_parse_literal);

	ck_assert_ptr_nonnull(root);
	ck_assert_str_eq(root->first->text, "${b} ${c} %{d}");
	ck_assert_str_eq(root->first->next->text, "${f}\n");
	hcl_free(h);
	ck_assert_ptr_null(parse(text, hcl_tree_parse));
	hcl_free(h);
}
END_TEST

START_TEST(ranges_and_labels)
{
	static const char text[] = "a \"b\" c {\n\td.e-5 = 1.5e-3\n}";
	const struct hcl_node *root = parse(text, hcl_tree_parse), *n;

	ck_assert_ptr_nonnull(root);
	n = root->first->first->first->first;
	ck_assert_str_eq(root->first->first->key, "b");
	ck_assert_str_eq(n->key, "d.e-5");
	ck_assert_str_eq(n->text, "1.5e-3");
	ck_assert_uint_eq(n->key_at.from, 11);
	ck_assert_uint_eq(n->key_at.to, 16);
	ck_assert_uint_eq(n->at.from, 19);
	ck_assert_uint_eq(n->at.to, 25);
	hcl_free(h);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, heredocs);
	tcase_add_test(tc, sequences_as_text);
	tcase_add_test(tc, ranges_and_labels);
}

int
main(void)
{
	return unit_run("hcl_tree", add);
}
