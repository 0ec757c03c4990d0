// SPDX-License-Identifier: Apache-2.0
/* cli_metrics.c: drover operator metrics prints the metrics of the agent. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_stream.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "model/engine/text.h"

static struct {
	const char *format;
	bool pretty;
} options;

const struct cli_flag cli_metrics_flags[] = {
	{ "format", CLI_FLAG_STRING, &options.format, "json|prometheus|openmetrics",
	    "the format of the metrics (json)" },
	{ "pretty", CLI_FLAG_BOOL, &options.pretty, NULL, "indent the JSON" },
	{ 0 },
};

static int
gather(void *arg, const void *data, size_t len, struct err *e)
{
	text_append(arg, data, len);
	return 0;
}

static int
print_indented(const struct text *answer, struct err *e)
{
	json_error_t why;
	json_t *json = json_loadb(answer->text, answer->len, 0, &why);
	cleanup_free char *text = json ? json_text(json, JSON_INDENT(4)) : NULL;

	json_decref(json);
	if (!text)
		return err_say(e, -EPROTO, "the agent's answer is no JSON: %s", why.text);
	(void)puts(text);
	return 0;
}

static bool
is_format(const char *word)
{
	static const char *const known[] = { "json", "prometheus", "openmetrics" };

	for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
		if (strcmp(word, known[i]) == 0)
			return true;
	return false;
}

int
cli_metrics(struct cli *cli, int argc, char **argv)
{
	const char *format = options.format ? options.format : "json";
	const bool indent = options.pretty && strcmp(format, "json") == 0;
	struct text answer = { 0 };
	struct err e = { 0 };
	char target[64];
	int r = 0;

	if (!is_format(format))
		r = err_say(&e, -EINVAL,
		    "unknown format \"%.32s\": json, prometheus and openmetrics are known", format);
	(void)snprintf(target, sizeof target, "/v1/metrics?format=%.16s", format);
	if (r == 0)
		r = cli_stream(cli,
		    &(struct cli_stream){ .method = "GET",
			.target = target,
			.on_body = indent ? gather : cli_stream_print,
			.arg = &answer },
		    &e);
	if (r == 0 && indent)
		r = print_indented(&answer, &e);
	else if (r == 0 && strcmp(format, "json") == 0)
		(void)putchar('\n');
	text_done(&answer);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
