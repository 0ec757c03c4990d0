// SPDX-License-Identifier: Apache-2.0
/* fuzz_template_formats.c: any text as JSON or YAML that a template reads, and writes again in each
 * format. */
#include <string.h>

#include "template/template.h"
#include "tests/fuzz/fuzz.h"

struct input {
	const char *text;
	size_t len;
};

static enum template_answer
find_file(void *arg, const struct template_query *q, const char **ret, size_t *ret_len,
    const char **ret_problem)
{
	const struct input *input = arg;

	(void)q;
	*ret_problem = NULL;
	*ret = input->text;
	*ret_len = input->len;
	return TEMPLATE_THERE;
}

static void
render(const char *text, struct input *input)
{
	const struct template_limits limits = {
		.memory_bytes = 8 << 20, .output_bytes = 1 << 20, .steps = 200000, .depth = 60
	};
	const struct template_options options = { .limits = &limits };
	const struct template_data data = { .ns = "default", .file = find_file, .arg = input };
	char *problem = NULL;
	struct template *t = template_parse(text, strlen(text), &options, &problem);
	const struct template_result *r;

	HOLDS(t != NULL);
	r = template_render(t, &data);
	HOLDS(r->problem ? *r->problem != '\0' : r->len <= limits.output_bytes);
	template_free(t);
}

int
LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	struct input input = { (const char *)bytes, size };

	render(
	    "{{$v := file \"x\" | parseJSON}}{{$v}}{{$v | toJSON}}{{$v | toYAML}}{{$v | toTOML}}",
	    &input);
	render(
	    "{{$v := file \"x\" | parseYAML}}{{$v}}{{$v | toJSON}}{{$v | toYAML}}{{$v | toTOML}}",
	    &input);
	return 0;
}
