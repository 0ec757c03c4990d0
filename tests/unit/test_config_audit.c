// SPDX-License-Identifier: Apache-2.0
/* test_config_audit.c: the configuration of the audit log. */
#include <string.h>

#include "config/config.h"
#include "tests/unit/config_bed.h"
#include "tests/unit/unit.h"

START_TEST(audit_says_where_entries_go)
{
	static const char later[] =
	    "audit { sink \"s\" { mode = \"0600\" delivery_guarantee = \"enforced\" } "
	    "filter \"all reads\" { endpoints = [\"/v1/c\"] } }";
	const struct config_audit *a = &config.audit;

	parse_well("");
	ck_assert(!a->enabled && !a->best_effort && a->mode == 0600 && a->rotate_ms == 86400000);
	ck_assert_uint_eq(a->rotate_bytes, 100000000);
	parse_well(
	    "audit { enabled = true sink \"s\" { type = \"file\" format = \"json\" "
	    "delivery_guarantee = \"best-effort\" path = \"/var/log/drover/a.log\" mode = \"0640\" "
	    "rotate_bytes = 100 rotate_duration = \"30s\" rotate_max_files = 10 } "
	    "filter \"all reads\" { type = \"HTTPEvent\" endpoints = [\"/v1/a\", \"/v1/b/*\"] "
	    "stages = [\"*\"] operations = [\"GET\"] } }");
	ck_assert(a->enabled && a->best_effort);
	ck_assert_str_eq(a->sink, "s");
	ck_assert_str_eq(a->path, "/var/log/drover/a.log");
	ck_assert_uint_eq(a->mode, 0640);
	ck_assert_uint_eq(a->rotate_bytes, 100);
	ck_assert_uint_eq(a->rotate_ms, 30000);
	ck_assert_uint_eq(a->rotate_max_files, 10);
	ck_assert_uint_eq(a->n_filters, 1);
	ck_assert_str_eq(a->filters[0].name, "all reads");
	ck_assert_uint_eq(a->filters[0].n_patterns, 4);
	ck_assert_str_eq(a->filters[0].patterns[1].text, "/v1/b/*");
	ck_assert_uint_eq(a->filters[0].patterns[3].member, AUDIT_OPERATION);
	/* A later file changes members of the sink and replaces a filter. */
	ck_assert_int_eq(parse_more(later, strlen(later)), 0);
	ck_assert(a->mode == 0600 && !a->best_effort && a->rotate_bytes == 100);
	ck_assert_uint_eq(a->n_filters, 1);
	ck_assert_uint_eq(a->filters[0].n_patterns, 1);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, audit_says_where_entries_go);
}

int
main(void)
{
	return unit_run("config_audit", add);
}
