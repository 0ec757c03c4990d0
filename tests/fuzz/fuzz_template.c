// SPDX-License-Identifier: Apache-2.0
/* fuzz_template.c: any text as a template, rendered from small data within small limits. */
#include <string.h>

#include "template/template.h"
#include "tests/fuzz/fuzz.h"

static const char *
find_env(void *arg, const char *name)
{
	(void)arg;
	return *name == 'A' ? "a,b=c\n[1, 2]" : NULL;
}

static enum template_answer
find_variable(void *arg, const struct template_query *q, const struct template_variable **ret)
{
	static const char *const keys[] = { "a", "b" };
	static const char *const values[] = { "1", "{\"x\": [1, null]}" };
	static const struct template_variable v = { .ns = "default",
		.path = "a",
		.create_time = 1,
		.n_items = 2,
		.keys = keys,
		.values = values };

	(void)arg;
	*ret = &v;
	return *q->name == 'a' ? TEMPLATE_THERE : TEMPLATE_UNKNOWN;
}

static enum template_answer
find_services(
    void *arg, const struct template_query *q, const struct template_service **ret, size_t *ret_n)
{
	static const char *const tags[] = { "t", "u" };
	static const struct template_service s[] = {
		{ "1", "a", "n", "10.0.0.1", "dc1", "j", "x", 80, 2, tags },
		{ "2", "a", "n", "10.0.0.2", "dc1", "j", "y", 81, 1, tags },
	};

	(void)arg;
	*ret = s;
	*ret_n = 2;
	return *q->name == 'u' ? TEMPLATE_UNKNOWN : TEMPLATE_THERE;
}

static enum template_answer
find_file(void *arg, const struct template_query *q, const char **ret, size_t *ret_len,
    const char **ret_problem)
{
	static const char text[] = "{\"a\": [1, \"b\"]}\nc = d\0e";

	(void)arg;
	*ret_problem = "it is outside of the task's directory";
	*ret = text;
	*ret_len = sizeof text - 1;
	return *q->name == 'u'   ? TEMPLATE_UNKNOWN
	       : *q->name == '.' ? TEMPLATE_ABSENT
				 : TEMPLATE_THERE;
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	const struct template_limits limits = {
		.memory_bytes = 1 << 20, .output_bytes = 1 << 16, .steps = 20000, .depth = 60
	};
	const struct template_options options = { .limits = &limits };
	static const struct template_interface interfaces[] = {
		{ "lo", "127.0.0.1/8", "", "up|loopback|running", 1, 65536, false },
		{ "eth0", "10.1.2.3/24", "02:00:00:00:00:01", "up|broadcast", 2, 1500, true },
		{ "eth0", "fd00::1:0:0:5/64", "02:00:00:00:00:01", "up|broadcast", 2, 1500, true },
	};
	const struct template_data data = { .ns = "default",
		.interfaces = interfaces,
		.n_interfaces = 3,
		.env = find_env,
		.variable = find_variable,
		.services = find_services,
		.file = find_file,
		.now_ns = 1700000000123456789 };
	char *problem = NULL;
	struct template *t = template_parse((const char *)bytes, size, &options, &problem);
	const struct template_result *r;

	HOLDS((t != NULL) == (problem == NULL));
	if (t) {
		r = template_render(t, &data);
		HOLDS(r->problem ? *r->problem != '\0' : r->len <= limits.output_bytes);
		HOLDS(strlen(r->output) <= r->len);
	}
	free(problem);
	template_free(t);
	return 0;
}
