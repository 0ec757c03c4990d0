// SPDX-License-Identifier: Apache-2.0
/* cli_event.c: drover event stream follows changes of objects. Runs in: cli. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cli_api.h"
#include "cli/cli_print.h"
#include "cli/cli_stream.h"
#include "cli/cli_verbs.h"
#include "common/mem.h"

#define LINE_MAX_BYTES ((size_t)64 << 20)

static struct {
	struct strings topics;
	int64_t index; /* -1: not given */
} options = { .index = -1 };

const struct cli_flag cli_event_stream_flags[] = {
	{ "index", CLI_FLAG_NUMBER, &options.index, "INDEX",
	    "begin with what has changed since this index (the last 100 changes)" },
	{ "topic", CLI_FLAG_STRINGS, &options.topics, "TOPIC[:KEY]",
	    "only this topic (Job, Allocation, Evaluation, Deployment, Service, Node), or one "
	    "object of it; repeat for each" },
	{ 0 },
};

struct events {
	struct cli *cli;
	struct text line; /* that has not ended */
};

/* The members that are shown of an object besides its key, if it has them. */
static void
describe(const json_t *object, struct text *ret)
{
	static const char *const members[] = { "Name", "JobID", "ServiceName", "ClientStatus",
		"Status", "TriggeredBy", "Address" };
	const char *sep = "";

	for (size_t i = 0; i < ELEMENTSOF(members); i++) {
		const char *value = cli_json_str(object, members[i]);

		if (*value) {
			text_printf(ret, "%s%s", sep, value);
			sep = ", ";
		}
	}
}

static void
print_event(struct cli *cli, const json_t *event)
{
	const char *key = cli_json_str(event, "Key"), *name;
	const char *namespace = cli_json_str(event, "Namespace");
	struct text what = { 0 };
	const json_t *object;
	bool other = *namespace && strcmp(namespace, "default") != 0;

	json_object_foreach (cli_json_get(event, "Payload"), name, object)
		describe(object, &what);
	cli_say(cli, "%-6lld  %-10s  %-24s  %.*s%s%s%s  %s",
	    (long long)cli_json_int(event, "Index"), cli_json_str(event, "Topic"),
	    cli_json_str(event, "Type"), cli->verbose || strlen(key) != 36 ? 1000 : cli->id_len,
	    key, other ? " (" : "", other ? namespace : "", other ? ")" : "", str(what.text));
	text_done(&what);
}

/* Empty objects are heartbeats. */
static int
print_line(struct events *ev, const char *line, size_t len, struct err *e)
{
	cleanup_json json_t *lines = NULL;
	json_error_t why;
	const json_t *event;
	size_t i;

	if (len == 0)
		return 0;
	lines = json_loadb(line, len, JSON_ALLOW_NUL, &why);
	if (!lines)
		return err_say(e, -EPROTO, "the agent's event is not JSON: %s", why.text);
	if (ev->cli->json && json_object_size(lines) > 0) {
		(void)fwrite(line, 1, len, stdout);
		(void)putchar('\n');
		return fflush(stdout) == 0 ? 0 : err_set(e, -errno, "write the event");
	}
	json_array_foreach (cli_json_get(lines, "Events"), i, event)
		print_event(ev->cli, event);
	return 0;
}

static int
on_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct events *ev = arg;
	const char *end, *at = data;
	int r = 0;

	while (r == 0 && (end = memchr(at, '\n', len))) {
		text_append(&ev->line, at, (size_t)(end - at));
		r = print_line(ev, ev->line.text, ev->line.len, e);
		text_done(&ev->line);
		len -= (size_t)(end - at) + 1;
		at = end + 1;
	}
	if (ev->line.len + len > LINE_MAX_BYTES)
		return err_say(e, -EFBIG, "an event is larger than 64 MiB");
	text_append(&ev->line, at, len);
	return r;
}

/* Returns the target, which the caller frees. */
static char *
stream_target(void)
{
	struct text target = { 0 };
	const char *sep = "?";

	text_printf(&target, "/v1/event/stream");
	for (size_t i = 0; i < options.topics.n; i++, sep = "&") {
		cleanup_free char *topic = cli_target("topic=%s", options.topics.v[i]);

		text_printf(&target, "%s%s", sep, topic);
	}
	if (options.index >= 0)
		text_printf(&target, "%sindex=%lld", sep, (long long)options.index);
	return target.text;
}

int
cli_event_stream(struct cli *cli, int argc, char **argv)
{
	cleanup_free char *target = stream_target();
	struct events ev = { .cli = cli };
	struct err e = { 0 };
	int r;

	(void)argc;
	(void)argv;
	r = cli_stream(cli,
	    &(struct cli_stream){ .method = "GET",
		.target = target,
		.endless = true,
		.on_body = on_body,
		.arg = &ev },
	    &e);
	text_done(&ev.line);
	return r < 0 ? cli_fail(cli, &e) : CLI_OK;
}
