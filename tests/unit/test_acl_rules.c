// SPDX-License-Identifier: Apache-2.0
/* test_acl_rules.c: what ACL policies permit. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "supervisor/acl/acl_rules.h"
#include "tests/unit/unit.h"

#define NS(name, body) "namespace \"" name "\" {" body "}\n"

enum { YES = 1, NO = 0 };

static const struct {
	const char *story, *first, *second;
	enum acl_need need;
	const char *namespace;
	bool permitted;
} cases[] = {
	{ "no policy at all", NULL, NULL, ACL_READ_JOB, "default", NO },
	{ "what nobody needs a policy for", NULL, NULL, ACL_OPEN, "default", YES },
	{ "an empty policy", "", NULL, ACL_READ_FS, "default", NO },
	{ "read reads jobs", NS("default", "policy = \"read\""), NULL, ACL_READ_JOB, "default",
	    YES },
	{ "read reads no files", NS("default", "policy = \"read\""), NULL, ACL_READ_FS, "default",
	    NO },
	{ "read reads no logs", NS("default", "policy = \"read\""), NULL, ACL_READ_LOGS, "default",
	    NO },
	{ "write reads files", NS("default", "policy = \"write\""), NULL, ACL_READ_FS, "default",
	    YES },
	{ "write runs commands", NS("default", "policy = \"write\""), NULL, ACL_EXEC, "default",
	    YES },
	{ "write runs none on the node", NS("default", "policy = \"write\""), NULL, ACL_EXEC_NODE,
	    "default", NO },
	{ "alloc-node-exec alone runs none", NS("default", "capabilities = [\"alloc-node-exec\"]"),
	    NULL, ACL_EXEC_NODE, "default", NO },
	{ "with both it does",
	    NS("default", "policy = \"write\" capabilities = [\"alloc-node-exec\"]"), NULL,
	    ACL_EXEC_NODE, "default", YES },
	{ "two policies add up", NS("default", "policy = \"write\""),
	    NS("default", "capabilities = [\"alloc-node-exec\"]"), ACL_EXEC_NODE, "default", YES },
	{ "a log is a file", NS("default", "capabilities = [\"read-fs\"]"), NULL, ACL_READ_LOGS,
	    "default", YES },
	{ "a file is no log", NS("default", "capabilities = [\"read-logs\"]"), NULL, ACL_READ_FS,
	    "default", NO },
	{ "gc by its own capability", NS("default", "capabilities = [\"gc-allocation\"]"), NULL,
	    ACL_COLLECT, "default", YES },
	{ "read parses jobs", NS("default", "policy = \"read\""), NULL, ACL_PARSE, "default", YES },
	{ "scale parses none", NS("default", "policy = \"scale\""), NULL, ACL_PARSE, "default",
	    NO },
	{ "who may submit a job may parse it", NS("default", "capabilities = [\"submit-job\"]"),
	    NULL, ACL_PARSE, "default", YES },
	{ "another namespace", NS("default", "policy = \"write\""), NULL, ACL_READ_JOB, "prod",
	    NO },
	{ "a prefix of the name is not the name", NS("prod", "policy = \"write\""), NULL,
	    ACL_READ_JOB, "production", NO },
	{ "and the other way", NS("production", "policy = \"write\""), NULL, ACL_READ_JOB, "prod",
	    NO },
	{ "a pattern", NS("prod-*", "policy = \"read\""), NULL, ACL_READ_JOB, "prod-web", YES },
	{ "a pattern that does not fit", NS("prod-*", "policy = \"read\""), NULL, ACL_READ_JOB,
	    "prod", NO },
	{ "the exact name goes first",
	    NS("*", "policy = \"write\"") NS("prod", "policy = \"read\""), NULL, ACL_LIFECYCLE,
	    "prod", NO },
	{ "the closer pattern goes first",
	    NS("*", "policy = \"write\"") NS("prod-*", "policy = \"read\""), NULL, ACL_LIFECYCLE,
	    "prod-web", NO },
	{ "two that are as close both have to",
	    NS("a-*", "policy = \"write\"") NS("*-b", "policy = \"read\""), NULL, ACL_LIFECYCLE,
	    "a-b", NO },
	{ "deny takes away", NS("default", "policy = \"write\""),
	    NS("default", "policy = \"deny\""), ACL_READ_JOB, "default", NO },
	{ "whichever comes first", NS("default", "capabilities = [\"deny\"]"),
	    NS("default", "policy = \"write\""), ACL_READ_JOB, "default", NO },
	{ "all namespaces at once are management's", NS("*", "policy = \"write\""), NULL,
	    ACL_READ_JOB, "*", NO },
	{ "words of the future grant nothing",
	    NS("default", "policy = \"all\" capabilities = [\"alloc\", \"read\", 7]"), NULL,
	    ACL_READ_JOB, "default", NO },
	{ "node", "node { policy = \"read\" }", NULL, ACL_NODE_READ, "default", YES },
	{ "node to read is not to write", "node { policy = \"read\" }", NULL, ACL_NODE_WRITE,
	    "default", NO },
	{ "node to write reads", "node { policy = \"write\" }", NULL, ACL_NODE_READ, "default",
	    YES },
	{ "node denied", "node { policy = \"write\" }", "node { policy = \"deny\" }", ACL_NODE_READ,
	    "default", NO },
	{ "node is not agent", "node { policy = \"write\" }", NULL, ACL_AGENT_READ, "default", NO },
	{ "agent", "agent { policy = \"read\" }", NULL, ACL_AGENT_READ, "default", YES },
	{ "agent to read is not to write", "agent { policy = \"read\" }", NULL, ACL_AGENT_WRITE,
	    "default", NO },
	{ "a namespace is not the node", NS("*", "policy = \"write\""), NULL, ACL_NODE_READ,
	    "default", NO },
	{ "what nobody named", NS("*", "policy = \"write\""), "node { policy = \"write\" }",
	    ACL_MANAGEMENT, "default", NO },
	{ "JSON", "{\"namespace\": {\"default\": {\"policy\": \"read\"}}}", NULL, ACL_READ_JOB,
	    "default", YES },
	{ "JSON with lists", "{\"namespace\": [{\"default\": [{\"policy\": \"read\"}]}]}", NULL,
	    ACL_READ_JOB, "default", YES },
	{ "read lists jobs", NS("default", "policy = \"read\""), NULL, ACL_LIST_JOBS, "default",
	    YES },
	{ "scale lists none", NS("default", "policy = \"scale\""), NULL, ACL_LIST_JOBS, "default",
	    NO },
	{ "scale scales", NS("default", "policy = \"scale\""), NULL, ACL_SCALE_JOB, "default",
	    YES },
	{ "read submits nothing", NS("default", "policy = \"read\""), NULL, ACL_SUBMIT_JOB,
	    "default", NO },
	{ "a part of submit-job", NS("default", "capabilities = [\"register-job\"]"), NULL,
	    ACL_SUBMIT_JOB, "default", YES },
	{ "and no other", NS("default", "capabilities = [\"register-job\"]"), NULL, ACL_REVERT_JOB,
	    "default", NO },
	{ "deregister-job does not purge", NS("default", "capabilities = [\"deregister-job\"]"),
	    NULL, ACL_PURGE_JOB, "default", NO },
	{ "a volume needs the plugin", NS("default", "policy = \"write\""), NULL, ACL_WRITE_VOLUME,
	    "default", NO },
	{ "with it it may be written", NS("default", "policy = \"write\""),
	    "plugin { policy = \"read\" }", ACL_WRITE_VOLUME, "default", YES },
	{ "plugins to list are not to read", "plugin { policy = \"list\" }", NULL, ACL_PLUGIN_READ,
	    "default", NO },
	{ "plugins to read are to list", "plugin { policy = \"read\" }", NULL, ACL_PLUGIN_LIST,
	    "default", YES },
	{ "any capability opens the namespace", NS("a", "capabilities = [\"read-fs\"]"), NULL,
	    ACL_NAMESPACE, "a", YES },
	{ "deny does not", NS("a", "policy = \"deny\""), NULL, ACL_NAMESPACE, "a", NO },
	{ "operators read keys", "operator { policy = \"read\" }", NULL, ACL_KEYRING_READ, "",
	    YES },
	{ "and rotate none", "operator { policy = \"read\" }", NULL, ACL_KEYRING_ROTATE, "", NO },
	{ "operators write keys", "operator { policy = \"write\" }", NULL, ACL_KEYRING_DELETE, "",
	    YES },
	{ "an operator's capability", "operator { capabilities = [\"keyring-rotate\"] }", NULL,
	    ACL_KEYRING_ROTATE, "", YES },
	{ "an operator denied", "operator { policy = \"write\" capabilities = [\"deny\"] }", NULL,
	    ACL_KEYRING_READ, "", NO },
	{ "a deny as close as the other pattern",
	    NS("a-*", "policy = \"write\"") NS("*-b", "policy = "
						      "\"deny\""),
	    NULL, ACL_READ_JOB, "a-b", NO },
	{ "variables are no capability",
	    NS("default", "variables { path \"*\" { capabilities = [\"write\", \"read-fs\"] } }"),
	    NULL, ACL_READ_FS, "default", NO },
};

START_TEST(what_a_policy_permits)
{
	struct acl_rules rules = { 0 };
	struct err e = { 0 };

	if (cases[_i].first)
		ck_assert_msg(acl_rules_add(&rules, cases[_i].first, "p", &e) == 0, "%s: %s",
		    cases[_i].story, e.msg);
	if (cases[_i].second)
		ck_assert_msg(acl_rules_add(&rules, cases[_i].second, "q", &e) == 0, "%s: %s",
		    cases[_i].story, e.msg);
	ck_assert_msg(
	    acl_rules_permit(&rules, cases[_i].need, cases[_i].namespace) == cases[_i].permitted,
	    "%s", cases[_i].story);
	acl_rules_done(&rules);
}
END_TEST

START_TEST(management_may_do_all)
{
	struct acl_rules rules = { .management = true };

	for (int need = ACL_MANAGEMENT; need < ACL_NEEDS; need++)
		ck_assert_msg(acl_rules_permit(&rules, (enum acl_need)need, "*"), "%d", need);
	for (int need = ACL_NEEDS; need < 100; need++)
		ck_assert(!acl_rules_permit(&(struct acl_rules){ 0 }, (enum acl_need)need, "x"));
}
END_TEST

static const struct {
	const char *hcl;
	bool workload;
	const char *namespace, *path;
	enum acl_variable what;
	bool permitted;
} variables[] = {
#define PATH(path, caps) "variables { path \"" path "\" { capabilities = [" caps "] } }"
	{ "", false, "default", "nomad/jobs", ACL_VARIABLE_READ, NO },
	{ "", true, "default", "nomad/jobs", ACL_VARIABLE_READ, YES },
	{ "", true, "default", "nomad/jobs/j/g/t", ACL_VARIABLE_LIST, YES },
	{ "", true, "default", "nomad/jobs/j/g/t", ACL_VARIABLE_WRITE, NO },
	{ "", true, "default", "nomad/jobs/j/g/u", ACL_VARIABLE_READ, NO },
	{ "", true, "default", "nomad/jobs/jj", ACL_VARIABLE_READ, NO },
	{ "", true, "other", "nomad/jobs/j", ACL_VARIABLE_READ, NO },
	{ NS("default", PATH("nomad/jobs/j", "\"deny\"")), true, "default", "nomad/jobs/j",
	    ACL_VARIABLE_READ, NO },
	{ NS("default", PATH("a/*", "\"read\"")), false, "default", "a/b", ACL_VARIABLE_LIST, YES },
	{ NS("default", PATH("a/*", "\"list\"")), false, "default", "a/b", ACL_VARIABLE_READ, NO },
	{ NS("default", PATH("a/*", "\"read\"") PATH("a/b", "\"write\"")), false, "default", "a/b",
	    ACL_VARIABLE_READ, NO },
	{ NS("*", PATH("*", "\"destroy\"")), false, "x", "y/z", ACL_VARIABLE_DESTROY, YES },
	{ NS("default", PATH("a", "\"write\"")), false, "other", "a", ACL_VARIABLE_WRITE, NO },
	{ NS("default", "policy = \"write\""), false, "default", "a", ACL_VARIABLE_READ, NO },
};

START_TEST(what_a_policy_permits_with_variables)
{
	const struct acl_claim claim = { "default", "j", "g", "t" };
	struct acl_rules rules = { 0 };
	struct err e = { 0 };

	ck_assert_int_eq(acl_rules_add(&rules, variables[_i].hcl, "p", &e), 0);
	ck_assert(acl_rules_permit_variable(&rules, variables[_i].workload ? &claim : NULL,
		      variables[_i].namespace, variables[_i].path,
		      variables[_i].what) == variables[_i].permitted);
	acl_rules_done(&rules);
}
END_TEST

START_TEST(host_volumes_have_names)
{
	struct acl_rules rules = { 0 };
	struct err e = { 0 };

	ck_assert_int_eq(acl_rules_add(&rules,
			     "host_volume \"prod-*\" { policy = \"read\" }\n"
			     "host_volume \"data\" { capabilities = [\"mount-readwrite\"] }",
			     "p", &e),
	    0);
	ck_assert(acl_rules_permit_host_volume(&rules, "prod-a", false));
	ck_assert(!acl_rules_permit_host_volume(&rules, "prod-a", true));
	ck_assert(acl_rules_permit_host_volume(&rules, "data", false));
	ck_assert(acl_rules_permit_host_volume(&rules, "data", true));
	ck_assert(!acl_rules_permit_host_volume(&rules, "other", false));
	acl_rules_done(&rules);
}
END_TEST

START_TEST(any_namespace_is_one_that_permits)
{
	struct acl_rules rules = { 0 };
	struct err e = { 0 };

	ck_assert_int_eq(acl_rules_add(&rules,
			     NS("a", "policy = \"read\"")
				 NS("b", "policy = \"write\" capabilities = [\"deny\"]"),
			     "p", &e),
	    0);
	ck_assert(acl_rules_permit_any(&rules, ACL_READ_JOB));
	ck_assert(!acl_rules_permit_any(&rules, ACL_SUBMIT_JOB));
	ck_assert(!acl_rules_permit_any(&rules, ACL_NODE_READ));
	acl_rules_done(&rules);
}
END_TEST

START_TEST(what_is_stored_is_checked)
{
	static const struct {
		const char *hcl;
		const char *fault; /* NULL: none */
	} policies[] = {
		{ "", NULL },
		{ NS("default", "policy = \"write\""), NULL },
		{ NS("default", PATH("a/*", "\"read\", \"destroy\"")), NULL },
		{ "node_pool \"x\" { policy = \"read\" } quota { policy = \"read\" }", NULL },
		{ "operator { policy = \"write\" } sentinel { policy = \"read\" }", NULL },
		{ "{\"namespace\": {\"default\": {\"policy\": \"read\"}}}", NULL },
		{ NS("default", "policy = \"all\""), "\"all\"" },
		{ NS("default", "capabilities = [\"read\"]"), "\"read\"" },
		{ NS("default", "capabilities = [7]"), "expected a text" },
		{ NS("default", "capabilities = \"read-job\""), "expected a list" },
		{ NS("default", "polcy = \"read\""), "\"polcy\"" },
		{ NS("", "policy = \"read\""), "a name has" },
		{ NS("a b", "policy = \"read\""), "a name has" },
		{ "namespace { policy = \"read\" }", "no name" },
		{ "nodes { policy = \"read\" }", "\"nodes\"" },
		{ "node { policy = \"list\" }", "\"list\"" },
		{ "node { capabilities = [\"read\"] }", "\"capabilities\"" },
		{ NS("default", PATH("/a", "\"read\"")), "begins with /" },
		{ NS("default", "variables { }"), "no path" },
		{ NS("default", PATH("a", "\"submit-job\"")), "\"submit-job\"" },
		{ "# nothing", "no rules" },
	};

	for (size_t i = 0; i < sizeof policies / sizeof policies[0]; i++) {
		struct err e = { 0 };
		int r = acl_rules_check(policies[i].hcl, "p", &e);

		ck_assert_msg(
		    policies[i].fault ? r < 0 && strstr(e.msg, policies[i].fault) : r == 0,
		    "%s: %s", policies[i].hcl, e.msg);
	}
}
END_TEST

START_TEST(what_cannot_be_read_is_refused)
{
	static const char *const texts[] = { "namespace \"a\" {", "namespace = 1",
		"node = \"write\"", "agent = true", "\"", "{",
		"namespace \"a\" { policy = \"read\"" };
	struct acl_rules rules = { 0 };

	for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
		struct err e = { 0 };

		ck_assert_msg(acl_rules_add(&rules, texts[i], "p", &e) < 0, "%s", texts[i]);
		ck_assert(e.msg[0] != '\0');
	}
	ck_assert(!acl_rules_permit(&rules, ACL_NODE_READ, "a"));
	acl_rules_done(&rules);
}
END_TEST

START_TEST(there_is_an_end_to_namespaces)
{
	struct acl_rules rules = { 0 };
	struct err e = { 0 };
	char text[80];
	int r = 0;

	for (int i = 0; i < 2000 && r == 0; i++) {
		(void)snprintf(text, sizeof text, NS("n%d", "policy = \"read\""), i);
		r = acl_rules_add(&rules, text, "p", &e);
	}
	ck_assert_int_eq(r, -E2BIG);
	acl_rules_done(&rules);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, what_a_policy_permits, 0, sizeof cases / sizeof cases[0]);
	tcase_add_test(tc, management_may_do_all);
	tcase_add_loop_test(
	    tc, what_a_policy_permits_with_variables, 0, sizeof variables / sizeof variables[0]);
	tcase_add_test(tc, host_volumes_have_names);
	tcase_add_test(tc, any_namespace_is_one_that_permits);
	tcase_add_test(tc, what_is_stored_is_checked);
	tcase_add_test(tc, what_cannot_be_read_is_refused);
	tcase_add_test(tc, there_is_an_end_to_namespaces);
}

int
main(void)
{
	return unit_run("acl_rules", add);
}
