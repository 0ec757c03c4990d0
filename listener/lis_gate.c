// SPDX-License-Identifier: Apache-2.0
/* lis_gate.c: the table of what may be requested at the address of health { address }. The
 * supervisor has a table of its own (supervisor/http/listener_links.c) and does not trust this one.
 * Runs in: listener. */
#include "listener/lis_gate.h"

#include <string.h>

#define PARAMS_MAX 3
#define VALUES_MAX 4

/* Its values: the word, and what the supervisor is asked; "" leaves the parameter out. */
struct param {
	const char *name;
	struct {
		const char *word, *asked;
	} values[VALUES_MAX];
};

static const struct path {
	const char *name;
	enum lis_kind kind;
	struct param params[PARAMS_MAX];
} paths[] = {
	{ "/v1/agent/health", LIS_HEALTH,
	    {
		{ "deep",
		    { { "1", "deep=1" }, { "true", "deep=1" }, { "0", "" }, { "false", "" } } },
		{ "type", { { "client", "type=client" }, { "server", "type=server" } } },
	    } },
	{ "/v1/metrics", LIS_METRICS,
	    {
		{ "format",
		    { { "prometheus", "format=prometheus" },
			{ "openmetrics", "format=openmetrics" }, { "json", "format=json" } } },
		{ "pretty", { { "1", "pretty=1" }, { "true", "pretty=1" }, { "", "pretty=1" } } },
	    } },
};

static bool
equals(const char *text, size_t len, const char *word)
{
	return len == strlen(word) && memcmp(text, word, len) == 0;
}

static const struct path *
find_path(const char *target, size_t len)
{
	for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++)
		if (equals(target, len, paths[i].name))
			return &paths[i];
	return NULL;
}

/* Finds what "name=value" asks; NULL if it is not in the table. Sets *ret_param to its index. */
static const char *
find_asked(const struct path *path, const char *pair, size_t len, size_t *ret_param)
{
	const char *equal = memchr(pair, '=', len);
	size_t name_len = equal ? (size_t)(equal - pair) : len;
	const char *value = equal ? equal + 1 : pair + len;
	size_t value_len = len - (size_t)(value - pair);

	for (size_t i = 0; i < PARAMS_MAX && path->params[i].name; i++) {
		if (!equals(pair, name_len, path->params[i].name))
			continue;
		*ret_param = i;
		for (size_t j = 0; j < VALUES_MAX && path->params[i].values[j].word; j++)
			if (equals(value, value_len, path->params[i].values[j].word))
				return path->params[i].values[j].asked;
		return NULL;
	}
	return NULL;
}

/* Fills in what each parameter asks, NULL if it is not given. Returns false for one that is not in
 * the table or comes twice. */
static bool
read_params(const struct path *path, const char *query, size_t len, const char *asked[PARAMS_MAX])
{
	while (len > 0) {
		const char *end = memchr(query, '&', len);
		size_t n = end ? (size_t)(end - query) : len, used = end ? n + 1 : n, i = 0;
		const char *text = find_asked(path, query, n, &i);

		if (!text || asked[i])
			return false;
		asked[i] = text;
		query += used;
		len -= used;
	}
	return true;
}

int
lis_gate_check(const struct lis_head *head, struct lis_question *ret, const char **ret_why)
{
	const char *mark = memchr(head->target, '?', head->target_len);
	size_t path_len = mark ? (size_t)(mark - head->target) : head->target_len;
	const struct path *path = find_path(head->target, path_len);
	const char *asked[PARAMS_MAX] = { NULL };
	struct lis_question q = { 0 };
	char separator = '?';
	char *at;

	if (!path) {
		*ret_why = "only /v1/agent/health and /v1/metrics are answered at this address";
		return -404;
	}
	if (mark && !read_params(path, mark + 1, head->target_len - path_len - 1, asked)) {
		*ret_why =
		    "a parameter is unknown, comes twice, or has a value that is not allowed";
		return -400;
	}
	q.kind = path->kind == LIS_HEALTH && asked[0] && asked[0][0] ? LIS_PROBE : path->kind;
	if (path->kind == LIS_METRICS)
		q.accept = head->accept;
	at = stpcpy(q.target, path->name);
	for (size_t i = 0; i < PARAMS_MAX; i++)
		if (asked[i] && asked[i][0]) {
			*at++ = separator;
			at = stpcpy(at, asked[i]);
			separator = '&';
		}
	*ret = q;
	return 0;
}

bool
lis_question_equals(const struct lis_question *a, const struct lis_question *b)
{
	return a->accept == b->accept && strcmp(a->target, b->target) == 0;
}
