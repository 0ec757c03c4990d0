// SPDX-License-Identifier: Apache-2.0
/* test_jobspec.c: job files: their JSON, their variables, and what is wrong with them. */
#include <stdlib.h>
#include <string.h>

#include "common/mem.h"
#include "jobspec/jobspec.h"
#include "model/engine/text.h"
#include "tests/unit/unit.h"

static const struct hcl_source *
source(const char *name, const char *text)
{
	struct hcl_source *s = mem_new(struct hcl_source);

	*s = (struct hcl_source){ name, text, strlen(text) };
	return s;
}

static const json_t *
find(const json_t *json, const char *path)
{
	char copy[200], *rest = copy, *step;

	(void)snprintf(copy, sizeof copy, "%s", path);
	while ((step = strsep(&rest, "/")) && json)
		json = json_is_array(json) ? json_array_get(json, (size_t)atoi(step))
					   : json_object_get(json, step);
	return json;
}

/* Compares the member at path with JSON text. */
static void
check_member(const json_t *job, const char *path, const char *expected)
{
	const json_t *found = find(job, path);
	char *text = found ? json_text(found, JSON_COMPACT | JSON_SORT_KEYS) : strdup("missing");

	if (strcmp(text, expected) != 0)
		ck_abort_msg("%s is %s, not %s", path, text, expected);
	free(text);
}

/* Problems point into the input, so it lives until the next one. */
static json_t *
read_job(struct hcl *h, const char *text, const char *const *vars, size_t n)
{
	static struct job_input in;

	in = (struct job_input){
		.file = { "x", text, strlen(text) },
		.vars = vars,
		.n_vars = n,
		.base_dir = ".",
		.strict = true,
	};
	return jobspec_read(h, &in, NULL);
}

#define JOB(inside)  "job \"j\" {\n" inside "\n}\n"
#define TASK(inside) JOB("group \"g\" {\n task \"t\" {\n" inside "\n}\n}")

static const struct {
	const char *text, *path, *expected;
} cases[] = {
	{ JOB(""), "ID", "\"j\"" },
	{ JOB("id = \"other\""), "ID", "\"other\"" },
	{ JOB("id = \"other\""), "Name", "\"j\"" },
	{ JOB("priority = 7"), "Priority", "7" },
	{ JOB("priority = \"7\""), "Priority", "7" },
	{ JOB(""), "Priority", "null" },
	{ JOB("datacenters = [\"a\", 1]"), "Datacenters", "[\"a\",\"1\"]" },
	{ JOB("meta {\n a = 1\n}"), "Meta", "{\"a\":\"1\"}" },
	{ JOB("meta = { \"a.b\" = \"c\" }"), "Meta", "{\"a.b\":\"c\"}" },
	{ JOB("periodic {\n cron = \"@daily\"\n}"), "Periodic/SpecType", "\"cron\"" },
	{ JOB("constraint {\n attribute = \"${attr.kernel.name}\"\n value = \"linux\"\n}"),
	    "Constraints/0",
	    "{\"LTarget\":\"${attr.kernel.name}\",\"Operand\":\"=\",\"RTarget\":\"linux\"}" },
	{ JOB("constraint {\n distinct_hosts = true\n}"), "Constraints/0",
	    "{\"LTarget\":\"\",\"Operand\":\"distinct_hosts\",\"RTarget\":\"true\"}" },
	{ JOB("constraint {\n attribute = \"a\"\n version = \">= 1\"\n}"), "Constraints/0",
	    "{\"LTarget\":\"a\",\"Operand\":\"version\",\"RTarget\":\">= 1\"}" },
	{ JOB("group \"g\" {\n network {\n port \"a\" {}\n port \"b\" { static = 80 }\n}\n}"),
	    "TaskGroups/0/Networks/0/ReservedPorts/0/Label", "\"b\"" },
	{ JOB("group \"g\" {\n volume \"v\" {\n type = \"host\"\n}\n}"),
	    "TaskGroups/0/Volumes/v/Name", "\"v\"" },
	{ JOB("task \"t\" {}"), "TaskGroups/0/Name", "\"t\"" },
	{ JOB("group \"g\" {\n vault {}\n task \"t\" {}\n}"),
	    "TaskGroups/0/Tasks/0/Vault/ChangeMode", "\"restart\"" },
	{ TASK("kill_timeout = \"1m30s\""), "TaskGroups/0/Tasks/0/KillTimeout", "90000000000" },
	{ TASK("config {\n args = [\"${NOMAD_PORT_http}\", \"${ meta.x }\"]\n}"),
	    "TaskGroups/0/Tasks/0/Config/args", "[\"${NOMAD_PORT_http}\",\"${ meta.x }\"]" },
	{ TASK("config {\n labels { a = 1 }\n labels { b = 2 }\n}"),
	    "TaskGroups/0/Tasks/0/Config/labels", "[{\"a\":1},{\"b\":2}]" },
	{ TASK("config {\n labels = { a = 1 }\n}"), "TaskGroups/0/Tasks/0/Config/labels",
	    "[{\"a\":1}]" },
	{ TASK("config {\n mount \"x\" { a = 1 }\n}"), "TaskGroups/0/Tasks/0/Config/mount",
	    "[{\"x\":[{\"a\":1}]}]" },
	{ TASK("config {\n a = null\n b = [null]\n}"), "TaskGroups/0/Tasks/0/Config",
	    "{\"b\":[null]}" },
	{ TASK("resources {\n device \"d\" {\n constraint {\n version = \"1\"\n}\n}\n}"),
	    "TaskGroups/0/Tasks/0/Resources/Devices/0/Constraints/0",
	    "{\"LTarget\":\"\",\"Operand\":\"version\",\"RTarget\":\"1\"}" },
	{ TASK("service {\n connect {\n sidecar_task {\n resources {\n device \"d\" {\n affinity "
	       "{\n regexp = \"r\"\n}\n}\n}\n}\n}\n}"),
	    "TaskGroups/0/Tasks/0/Services/0/Connect/SidecarTask/Resources/Devices/0/Affinities/0",
	    "{\"LTarget\":\"\",\"Operand\":\"regexp\",\"RTarget\":\"r\",\"Weight\":null}" },
	{ JOB("group \"a$${b}%%{c}\" {}"), "TaskGroups/0/Name", "\"a${b}%{c}\"" },
	{ TASK("config {\n n = [0.1, 1e-7, 1e20, 1.5e300]\n}"), "TaskGroups/0/Tasks/0/Config/n",
	    "[0.1,1e-7,100000000000000000000,1.5e+300]" },
	{ TASK("config {\n n = 9007199254740993\n}"), "TaskGroups/0/Tasks/0/Config/n",
	    "9007199254740993" },
	{ TASK("template {\n data = \"x\"\n}"), "TaskGroups/0/Tasks/0/Templates/0/Splay",
	    "5000000000" },
	{ TASK("identity {\n env = true\n}\n identity {\n name = \"other\"\n}"),
	    "TaskGroups/0/Tasks/0/Identity/Env", "true" },
	{ TASK("dynamic \"service\" {\n for_each = [\"a\", \"b\"]\n content {\n name = "
	       "service.value\n}\n}"),
	    "TaskGroups/0/Tasks/0/Services/1/Name", "\"b\"" },
	{ "locals {\n a = local.b\n b = upper(\"x\")\n}\n" JOB("region = local.a"), "Region",
	    "\"X\"" },
	{ "variable \"v\" {\n type = list(number)\n default = [\"1\", 2]\n}\n" JOB(
	      "priority = var.v[0] + var.v[1]"),
	    "Priority", "3" },
};

static const struct {
	const char *text, *path, *expected;
} defaults[] = {
	{ JOB(""), "Namespace", "\"default\"" },
	{ JOB(""), "Update/HealthyDeadline", "300000000000" },
	{ JOB("type = \"batch\""), "Update", "null" },
	{ JOB("update {\n canary = 1\n}\n group \"g\" {\n update {\n auto_revert = true\n}\n}"),
	    "TaskGroups/0/Update",
	    "{\"AutoPromote\":false,\"AutoRevert\":true,\"Canary\":1,\"HealthCheck\":\"checks\","
	    "\"HealthyDeadline\":300000000000,\"MaxParallel\":1,\"MinHealthyTime\":10000000000,"
	    "\"ProgressDeadline\":600000000000,\"Stagger\":30000000000}" },
	{ TASK(""), "TaskGroups/0/Tasks/0/Resources/CPU", "100" },
	{ TASK("resources {\n cores = 2\n}"), "TaskGroups/0/Tasks/0/Resources/CPU", "0" },
	{ JOB("group \"g\" {\n scaling {\n min = 3\n max = 4\n}\n}"), "TaskGroups/0/Count", "3" },
	{ JOB("group \"g\" {\n count = 2\n scaling {\n max = 4\n}\n}"), "TaskGroups/0/Scaling/Min",
	    "2" },
	{ TASK("restart {\n attempts = 7\n}"), "TaskGroups/0/Tasks/0/RestartPolicy",
	    "{\"Attempts\":7,\"Delay\":15000000000,\"Interval\":1800000000000,\"Mode\":\"fail\","
	    "\"RenderTemplates\":false}" },
	{ TASK("restart {\n attempts = 7\n}"), "TaskGroups/0/RestartPolicy/Attempts", "2" },
	{ TASK("service {\n}"), "TaskGroups/0/Tasks/0/Services/0/Name", "\"j-g-t\"" },
	{ TASK("service {\n check_restart {\n limit = 3\n}\n check {\n type = \"tcp\"\n}\n}"),
	    "TaskGroups/0/Tasks/0/Services/0/Checks/0/CheckRestart",
	    "{\"Grace\":1000000000,\"IgnoreWarnings\":false,\"Limit\":3}" },
	{ TASK("artifact {\n source = \"http://a/b/c.tgz\"\n mode = \"file\"\n}"),
	    "TaskGroups/0/Tasks/0/Artifacts/0/RelativeDest", "\"local/c.tgz\"" },
	{ TASK("template {\n change_signal = \"sigusr1\"\n}"),
	    "TaskGroups/0/Tasks/0/Templates/0/ChangeSignal", "\"SIGUSR1\"" },
};

START_TEST(members_with_the_defaults_of_the_api)
{
	for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
		struct hcl *h = hcl_new(&hcl_job_limits);
		json_t *job = read_job(h, defaults[i].text, NULL, 0);

		if (!job)
			ck_abort_msg("%s", hcl_problem_text(h, hcl_problems(h)));
		jobspec_canonicalize(job);
		check_member(job, defaults[i].path, defaults[i].expected);
		json_decref(job);
		hcl_free(h);
	}
}
END_TEST

START_TEST(members)
{
	for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
		struct hcl *h = hcl_new(&hcl_job_limits);
		json_t *job = read_job(h, cases[i].text, NULL, 0);

		if (!job)
			ck_abort_msg("%s", hcl_problem_text(h, hcl_problems(h)));
		check_member(job, cases[i].path, cases[i].expected);
		json_decref(job);
		hcl_free(h);
	}
}
END_TEST

START_TEST(problems)
{
	static const char *const wrong[][2] = {
		{ "", "x:1:1: there is no job in this file" },
		{ "job {}\n", "x:1:1: a job block needs one name" },
		{ JOB("") JOB(""), "x:4:1: a file has one job; the first is in line 1" },
		{ TASK("service {\n check {\n nterval = \"1s\"\n}\n}"),
		    "x:6:2: unknown attribute \"nterval\" in a check block: did you mean "
		    "\"interval\"?" },
		{ JOB("priorty = 1"), "x:2:1: unknown attribute \"priorty\" in a job block: did "
				      "you mean \"priority\"?" },
		{ JOB("gruop \"g\" {}"),
		    "x:2:1: unknown block \"gruop\" in a job block: did you mean \"group\"?" },
		{ JOB("group {}"), "x:2:1: a group block needs a name" },
		{ JOB("group \"a-${b}\" {}"),
		    "x:2:10: a label is not evaluated: it cannot have ${" },
		{ JOB("task \"%{if true}\" {}"), "x:2:7: a label is not evaluated" },
		{ JOB("priority = \"x\""), "x:2:12: wrong value: \"x\" is not a number" },
		{ JOB("type = \"a\xff z\""), "x:2:10: expected UTF-8 text, found an invalid byte\n"
					     "  2 | type = \"a? z\"\n" },
		{ JOB("priority = 1.5"), "x:2:12: expected a whole number, found 1.5" },
		{ JOB("update = {}"),
		    "x:2:1: \"update\" is a block: write update { … } without \"=\"" },
		{ JOB("update {}\nupdate {}"), "x:3:1: only one update block is allowed here" },
		{ TASK("kill_timeout = \"soon\""), "x:4:16: expected a duration such as \"30s\"" },
		{ TASK("lifecycle {}"), "x:4:1: a lifecycle block needs the attribute \"hook\"" },
		{ "variable \"v\" {}\n" JOB("region = var.v"),
		    "x:1:10: variable \"v\" has no value" },
		{ JOB("region = var.v"), "x:2:10: there is no attribute \"v\" here" },
		{ "locals {\n a = range(1000)\n b = setproduct(local.a, local.a, local.a)\n}\n" JOB(
		      ""),
		    "x:3:" },
		{ "locals {\n a = local.b\n b = local.a\n}\n" JOB(""),
		    "x:2:6: there is no attribute \"b\" here" },
		{ "variable \"v\" {\n default = 1\n validation {\n condition = var.v > 1\n "
		  "error_message = \"too small\"\n}\n}\n" JOB(""),
		    "x:2:12: wrong value for variable \"v\": too small" },
		{ JOB("region = file(\"/etc/hostname\")"), "x:2:10: " },
	};

	for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
		struct hcl *h = hcl_new(&hcl_job_limits);
		json_t *job = read_job(h, wrong[i][0], NULL, 0);
		const char *found = job ? "no problem" : hcl_problem_text(h, hcl_problems(h));

		if (strncmp(found, wrong[i][1], strlen(wrong[i][1])) != 0)
			ck_abort_msg("%s\n  is %s\n  not %s", wrong[i][0], found, wrong[i][1]);
		json_decref(job);
		hcl_free(h);
	}
}
END_TEST

START_TEST(values_of_variables)
{
	static const char text[] = "variable \"s\" {}\nvariable \"l\" {\n type = "
				   "list(string)\n}\nvariable \"d\" {\n default = \"old\"\n}\n" JOB(
				       "region = var.s\n datacenters = var.l\n namespace = var.d");
	static const char *const vars[] = { "s=a=b", "l=[\"x\", \"y\"]", "d=new" };
	struct hcl *h = hcl_new(&hcl_job_limits);
	json_t *job = read_job(h, text, vars, 3);

	ck_assert_ptr_nonnull(job);
	check_member(job, "Region", "\"a=b\"");
	check_member(job, "Datacenters", "[\"x\",\"y\"]");
	check_member(job, "Namespace", "\"new\"");
	json_decref(job);
	hcl_free(h);
}
END_TEST

/* A file of values is HCL or JSON, whose texts are no templates. */
static const struct {
	const char *text, *region;
} value_files[] = {
	{ "a = \"file\"\n", "\"file\"" },
	{ "{ \"//\": \"a comment\", \"a\": \"file ${1}\" }\n", "\"file ${1}\"" },
};

START_TEST(files_and_environment_set_variables)
{
	static const char *const env[] = { "NOMAD_VAR_a=env", "NOMAD_VAR_b=env", "NOMAD_VAR_none=x",
		"HOME=/", NULL };
	const struct hcl_source *files = source("vars", value_files[_i].text);
	const struct hcl_source *file = source("x",
	    "variable \"a\" {}\nvariable \"b\" {}\n" JOB("region = var.a\n namespace = var.b"));
	struct job_input in = {
		.file = *file, .var_files = files, .n_var_files = 1, .env = env, .strict = true
	};
	struct hcl *h = hcl_new(&hcl_job_limits);
	json_t *job = jobspec_read(h, &in, NULL);

	ck_assert_ptr_nonnull(job);
	check_member(job, "Region", value_files[_i].region);
	check_member(job, "Namespace", "\"env\"");
	json_decref(job);
	hcl_free(h);
	free((void *)files);
	free((void *)file);
}
END_TEST

/* A value of the environment that a file overrides is not part of the source. */
START_TEST(the_source_has_the_values_of_variables)
{
	static const char *const env[] = { "NOMAD_VAR_a=env", "NOMAD_VAR_b=env", "NOMAD_VAR_none=x",
		NULL };
	static const char *const vars[] = { "c=[1]", "d=true", "e={ x = 2 }" };
	const struct hcl_source *files = source("vars", "a = \"file\"\n\n");
	const struct hcl_source *file = source("x",
	    "variable \"a\" {}\nvariable \"b\" {}\nvariable \"c\" {\n type = list(number)\n}\n"
	    "variable \"d\" {\n default = false\n}\nvariable \"e\" {\n default = {}\n}\n"
	    "variable \"f\" {\n default = 1\n}\n" JOB(""));
	struct job_input in = { .file = *file,
		.var_files = files,
		.n_var_files = 1,
		.env = env,
		.vars = vars,
		.n_vars = 3,
		.strict = true };
	struct hcl *h = hcl_new(&hcl_job_limits);
	json_t *submission = NULL, *job = jobspec_read(h, &in, &submission);

	ck_assert_ptr_nonnull(job);
	check_member(submission, "Format", "\"hcl2\"");
	ck_assert_str_eq(json_string_value(json_object_get(submission, "Source")), file->text);
	check_member(submission, "VariableFlags", "{\"b\":\"env\",\"d\":\"true\"}");
	check_member(submission, "Variables", "\"a = \\\"file\\\"\\n\\nc = [1]\\ne = { x = 2 }\"");
	json_decref(job);
	json_decref(submission);
	hcl_free(h);
	free((void *)files);
	free((void *)file);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, members);
	tcase_add_test(tc, members_with_the_defaults_of_the_api);
	tcase_add_test(tc, problems);
	tcase_add_test(tc, values_of_variables);
	tcase_add_loop_test(tc, files_and_environment_set_variables, 0,
	    (int)(sizeof value_files / sizeof value_files[0]));
	tcase_add_test(tc, the_source_has_the_values_of_variables);
}

int
main(void)
{
	return unit_run("jobspec", add);
}
