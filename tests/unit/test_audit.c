// SPDX-License-Identifier: Apache-2.0
/* test_audit.c: filters of the audit log, and the unit of a process by its cgroup. */
#include <stdio.h>
#include <string.h>

#include "supervisor/audit/audit_filter.h"
#include "supervisor/audit/peer_unit.h"
#include "tests/unit/unit.h"

static void
add(struct config_audit_filter *f, enum audit_member member, const char *text)
{
	struct config_audit_pattern *p = &f->patterns[f->n_patterns++];

	p->member = member;
	(void)snprintf(p->text, sizeof p->text, "%s", text);
}

START_TEST(a_filter_matches_in_all_three)
{
	static struct config_audit c;
	struct config_audit_filter *f = &c.filters[0];

	c = (struct config_audit){ .n_filters = 1 };
	add(f, AUDIT_ENDPOINT, "/v1/job/*/summary");
	add(f, AUDIT_ENDPOINT, "/v1/metrics");
	ck_assert(!audit_filter_excludes(&c, "/v1/metrics", "OperationReceived", "GET"));
	add(f, AUDIT_STAGE, "OperationReceived");
	add(f, AUDIT_OPERATION, "GET");
	ck_assert(audit_filter_excludes(&c, "/v1/metrics", "OperationReceived", "GET"));
	ck_assert(audit_filter_excludes(&c, "/v1/job/a/b/summary", "OperationReceived", "GET"));
	ck_assert(!audit_filter_excludes(&c, "/v1/metrics", "OperationComplete", "GET"));
	ck_assert(!audit_filter_excludes(&c, "/v1/metrics", "OperationReceived", "PUT"));
	ck_assert(!audit_filter_excludes(&c, "/v1/metrics/x", "OperationReceived", "GET"));
	c.n_filters = 2;
	add(&c.filters[1], AUDIT_ENDPOINT, "*");
	add(&c.filters[1], AUDIT_STAGE, "*");
	add(&c.filters[1], AUDIT_OPERATION, "*");
	ck_assert(audit_filter_excludes(&c, "/v1/jobs", "OperationComplete", "DELETE"));
}
END_TEST

static void
is_in(const char *cgroups, const char *unit, const char *session)
{
	struct peer_unit found = peer_unit_parse(cgroups);

	ck_assert_msg(strcmp(found.unit, unit) == 0 && strcmp(found.session, session) == 0,
	    "%s: unit \"%s\", session \"%s\"", cgroups, found.unit, found.session);
}

START_TEST(the_unit_of_a_process)
{
	char deep[1024] = "0::";

	is_in("0::/system.slice/cron.service\n", "cron.service", "");
	is_in("0::/user.slice/user-1000.slice/session-3.scope\n", "session-3.scope", "3");
	is_in("0::/user.slice/user-0.slice/user@0.service/app.slice/a.service\n", "user@0.service",
	    "");
	is_in("12:cpu:/x.service\n1:name=systemd:/system.slice/ssh.service\n0::/\n", "ssh.service",
	    "");
	is_in("0::/\n", "", "");
	is_in("0::/init.scope\n", "init.scope", "");
	is_in("0::/drover/tasks/x\n", "", "");
	is_in("", "", "");
	is_in("0::/.service\n", "", "");
	is_in("0::/session-.scope", "session-.scope", "");
	for (int i = 0; i < 60; i++)
		(void)strcat(deep, "/long-name-of-a");
	(void)strcat(deep, ".service");
	is_in(deep, "long-name-of-a.service", "");
	memset(deep + 4, 'x', 400);
	is_in(deep, "long-name-of-a.service", "");
	ck_assert_str_eq(peer_unit_of(0).unit, "");
}
END_TEST

static void
add_tests(TCase *tc)
{
	tcase_add_test(tc, a_filter_matches_in_all_three);
	tcase_add_test(tc, the_unit_of_a_process);
}

int
main(void)
{
	return unit_run("audit", add_tests);
}
