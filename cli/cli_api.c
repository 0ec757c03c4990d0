// SPDX-License-Identifier: Apache-2.0
/* cli_api.c: requests to the agent's API, with retries across a restart. Runs in: cli. */
#include "cli/cli_api.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/cli_namespace.h"
#include "cli/cli_print.h"
#include "cli/cli_screen.h"
#include "cli/cli_tcp.h"
#include "cli/cli_template.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/mem.h"
#include "model/engine/percent.h"

#define BODY_MAX          ((size_t)256 << 20)
#define RETRY_FOR_MS      15000 /* how long a GET is retried if the agent has answered before */
#define CUT_FOR_MS        1000 /* the same if no answer has come yet: a starting agent resets them */
#define RETRY_EVERY_MS    200
#define PROGRESS_EVERY_MS 1000

int
cli_api_choose(struct cli *cli, struct err *e)
{
	const char *nomad = getenv("NOMAD_ADDR");

	if (!cli->address)
		cli->address = getenv("DROVER_ADDR");
	if ((!cli->address || !*cli->address) && nomad && strncmp(nomad, "unix://", 7) == 0)
		cli->address = nomad;
	if (!cli->address || !*cli->address)
		cli->address = CLI_ADDRESS_DEFAULT;
	cli_tls_from_environment();
	cli->socket_path = NULL;
	if (cli_is_tcp(cli->address))
		return 0;
	if (strncmp(cli->address, "unix://", 7) != 0 || cli->address[7] == '\0')
		return err_say(e, -EINVAL,
		    "the address \"%s\" is not of the form unix:///path/of/the/socket or "
		    "https://host:port",
		    cli->address);
	cli->socket_path = cli->address + 7;
	return 0;
}

int
cli_api_connect(const struct cli *cli, struct err *e)
{
	return cli->socket_path ? cli_http_connect(cli->socket_path, e)
				: cli_tcp_connect(cli->address, e);
}

static int
append_body(void *arg, const void *data, size_t len, struct err *e)
{
	struct text *body = arg;

	if (len > BODY_MAX - body->len)
		return err_say(
		    e, -EFBIG, "the agent's answer is larger than %zu MiB", BODY_MAX >> 20);
	text_append(body, data, len);
	return 0;
}

int
cli_api_explain(struct cli *cli, struct err *e)
{
	switch (e->code) {
	case -ENOENT:
	case -ECONNREFUSED:
		return err_say(e, e->code,
		    "no agent answers at %s: start one with `drover agent` or `systemctl start "
		    "drover`, or give its address with -address or DROVER_ADDR",
		    cli->address);
	case -EACCES:
		if (!cli->socket_path)
			return e->code;
		return err_say(e, e->code,
		    "permission denied for the control socket %s: only root and members of the "
		    "group drover may open it",
		    cli->address);
	default:
		return e->code;
	}
}

int
cli_api_open(
    struct cli *cli, const char *method, const char *target, const char *body, struct err *e)
{
	cleanup_free char *whole = cli_namespace_target(cli, method, target);
	cleanup_close int fd = -1;
	int r;

	fd = cli_api_connect(cli, e);
	if (fd < 0)
		return fd;
	r = cli_http_send(fd, method, whole, cli->headers, body, body ? strlen(body) : 0,
	    clock_ms() + cli->timeout_ms, e);
	/* The agent may have answered and closed before it had read the whole request, so the
	 * answer is read even if sending failed. */
	if (r < 0 && r != -EPIPE && r != -ECONNRESET)
		return r;
	return steal_fd(&fd);
}

/* As cli_http_recv(), but returns 0 at least once a second, and on a terminal shows the time. */
static int
recv_with_progress(int fd, struct cli_http_parser *parser, uint64_t deadline_ms, struct err *e)
{
	uint64_t now_ms = clock_ms(), until_ms = now_ms + PROGRESS_EVERY_MS;
	int r;

	if (until_ms >= deadline_ms)
		return cli_http_recv(fd, parser, deadline_ms, e);
	r = cli_http_recv(fd, parser, until_ms, e);
	if (r != -ETIMEDOUT)
		return r;
	cli_progress("Waiting for the agent's answer, for %llu s at most",
	    (unsigned long long)(deadline_ms - now_ms) / 1000);
	return 0;
}

static int
exchange(struct cli *cli, const char *method, const char *target, const char *text,
    struct text *body, struct err *e)
{
	struct cli_http_parser parser;
	cleanup_close int fd = -1;
	uint64_t deadline_ms = clock_ms() + cli->timeout_ms;
	int r;

	text_done(body);
	fd = cli_api_open(cli, method, target, text, e);
	if (fd < 0)
		return fd;
	cli_http_parser_init(&parser, append_body, body);
	do {
		r = recv_with_progress(fd, &parser, deadline_ms, e);
	} while (r == 0);
	cli_progress_clear();
	if (r < 0)
		return r;
	cli->status = parser.status;
	(void)snprintf(cli->next_token, sizeof cli->next_token, "%s", parser.next_token);
	return 0;
}

static bool
may_be_restarting(const struct cli *cli, int code)
{
	if (code == -ECONNRESET || code == -EPIPE)
		return true;
	return cli->answered && (code == -ECONNREFUSED || code == -ENOENT || code == -EAGAIN);
}

/* Sends the request; repeats a GET while the agent seems to be restarting. */
static int
exchange_patiently(struct cli *cli, const char *method, const char *target, const char *text,
    struct text *body, struct err *e)
{
	uint64_t until_ms = clock_ms() + (cli->answered ? RETRY_FOR_MS : CUT_FOR_MS);
	bool get = strcmp(method, "GET") == 0;
	bool said = false;
	int r;

	for (;;) {
		cli->status = 0;
		r = exchange(cli, method, target, text, body, e);
		if (r == 0 || !get || !may_be_restarting(cli, r) || clock_ms() >= until_ms)
			break;
		if (!said && cli->answered)
			(void)fprintf(stderr,
			    "drover: the connection to the agent was lost; retrying for %d s\n",
			    RETRY_FOR_MS / 1000);
		said = true;
		cli_sleep_ms(RETRY_EVERY_MS);
	}
	if (r == 0)
		cli->answered = true;
	return r < 0 ? cli_api_explain(cli, e) : 0;
}

int
cli_api_refusal(struct cli *cli, int status, const char *text, struct err *e)
{
	int code = status == 404 ? -ENOENT : -EREMOTEIO;

	free(cli->refusal);
	cli->refusal = mem_strdup(text);
	cli_clean_lines(cli->refusal);
	if (*cli->refusal)
		return err_say(e, code, "%s", cli->refusal);
	return err_say(e, code, "the agent answered with status %d and no text", status);
}

/* Reads the answer with its body as JSON into *ret, unless ret is NULL. */
static int
read_answer(struct cli *cli, const struct text *body, json_t **ret, struct err *e)
{
	json_t *answer = NULL;
	json_error_t why;

	if (cli->status < 200 || cli->status > 299)
		return cli_api_refusal(cli, cli->status, str(body->text), e);
	if (body->len) {
		answer = json_loadb(body->text, body->len, JSON_DECODE_ANY | JSON_ALLOW_NUL, &why);
		if (!answer)
			return err_say(e, -EPROTO, "the agent's answer is not JSON: %s", why.text);
	}
	if (ret)
		*ret = answer;
	else
		json_decref(answer);
	return 0;
}

int
cli_api_send(struct cli *cli, const char *method, const char *target, const json_t *request,
    json_t **ret, struct err *e)
{
	cleanup_free char *text = NULL;
	struct text body = { 0 };
	int r;

	free(steal_ptr(&cli->refusal));
	if (request) {
		text = json_text(request, JSON_COMPACT);
		if (!text)
			return err_say(e, -EINVAL, "encode the request as JSON");
	}
	r = exchange_patiently(cli, method, target, text, &body, e);
	if (r == 0)
		r = read_answer(cli, &body, ret, e);
	text_done(&body);
	return r;
}

int
cli_api_send_new(struct cli *cli, const char *method, const char *target, json_t *request,
    json_t **ret, struct err *e)
{
	cleanup_json json_t *owned = request;

	if (!owned)
		return err_say(e, -EINVAL, "an argument is not valid UTF-8");
	return cli_api_send(cli, method, target, owned, ret, e);
}

int
cli_api_get(struct cli *cli, const char *target, json_t **ret, struct err *e)
{
	return cli_api_send(cli, "GET", target, NULL, ret, e);
}

int
cli_json_print(const json_t *value, struct err *e)
{
	cleanup_free char *text = NULL;

	if (!value)
		return 0;
	if (cli_template_used())
		return cli_template_print(value, e);
	text = json_text(value, JSON_INDENT(4));
	return !text || puts(text) < 0 ? err_say(e, -EIO, "print the answer") : 0;
}

int
cli_api_print(struct cli *cli, const char *target, struct err *e)
{
	cleanup_json json_t *answer = NULL;
	int r;

	r = cli_api_get(cli, target, &answer, e);
	return r < 0 ? r : cli_json_print(answer, e);
}

int
cli_api_fetch(struct cli *cli, const char *target, json_t **ret, struct err *e)
{
	int r = cli->json ? cli_api_print(cli, target, e) : cli_api_get(cli, target, ret, e);

	return r < 0 ? r : !cli->json;
}

char *
cli_target(const char *fmt, ...)
{
	struct text target = { 0 };
	va_list ap;

	va_start(ap, fmt);
	for (; *fmt; fmt++) {
		if (fmt[0] == '%' && fmt[1] == 's') {
			percent_encode(&target, va_arg(ap, const char *));
			fmt++;
		} else {
			text_append(&target, fmt, 1);
		}
	}
	va_end(ap);
	return target.text;
}

json_t *
cli_json_get(const json_t *value, const char *path)
{
	char key[128];
	size_t n;

	while (value && *path) {
		n = strcspn(path, "/");
		if (n >= sizeof key)
			return NULL;
		memcpy(key, path, n);
		key[n] = '\0';
		value = json_object_get(value, key);
		path += n + (path[n] == '/');
	}
	return (json_t *)value;
}

const char *
cli_json_str(const json_t *value, const char *path)
{
	return json_string_value(cli_json_get(value, path)) ?: "";
}

json_int_t
cli_json_int(const json_t *value, const char *path)
{
	json_t *found = cli_json_get(value, path);

	if (json_is_real(found))
		return fabs(json_real_value(found)) < 9e18 ? (json_int_t)json_real_value(found) : 0;
	return json_integer_value(found);
}

bool
cli_json_true(const json_t *value, const char *path)
{
	return json_is_true(cli_json_get(value, path));
}

int
cli_json_add_pairs(json_t *object, int n, char **words, struct err *e)
{
	for (int i = 0; i < n; i++) {
		char *value = strchr(words[i], '=');

		if (!value || value == words[i])
			return err_say(e, -EINVAL, "expected KEY=VALUE, not \"%s\"", words[i]);
		*value++ = '\0';
		if (json_object_set_new(object, words[i], json_string(value)) < 0)
			return err_say(e, -EINVAL, "the value of %s is not UTF-8", words[i]);
	}
	return 0;
}

json_t *
cli_json_strings(char *const *v, size_t n)
{
	cleanup_json json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		if (json_array_append_new(list, json_string(v[i])) < 0)
			return NULL;
	return steal_ptr(&list);
}

static int
compare_keys(const void *a, const void *b)
{
	return strcmp(*(const char *const *)a, *(const char *const *)b);
}

const char **
cli_json_keys(const json_t *object, size_t *ret_n)
{
	const char **keys = mem_zeroed(json_object_size(object), sizeof *keys);
	const char *key;
	json_t *value;

	*ret_n = 0;
	json_object_foreach ((json_t *)object, key, value)
		keys[(*ret_n)++] = key;
	qsort(keys, *ret_n, sizeof *keys, compare_keys);
	return keys;
}

int64_t
cli_json_time_ns(const json_t *value, const char *path)
{
	json_t *found = cli_json_get(value, path);
	const char *text = json_string_value(found), *rest;
	struct tm tm = { 0 };
	int hours, minutes;
	char sign;
	int64_t s;

	if (json_is_integer(found))
		return json_integer_value(found);
	rest = text ? strptime(text, "%Y-%m-%dT%H:%M:%S", &tm) : NULL;
	if (!rest || tm.tm_year < 70)
		return 0;
	s = timegm(&tm);
	if (*rest == '.')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (sscanf(rest, "%c%2d:%2d", &sign, &hours, &minutes) == 3 && (sign == '+' || sign == '-'))
		s -= (sign == '-' ? -1 : 1) * (hours * 3600 + minutes * 60);
	return cli_scale(s, NS_PER_S);
}
