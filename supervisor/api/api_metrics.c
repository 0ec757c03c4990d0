// SPDX-License-Identifier: Apache-2.0
/* api_metrics.c: /v1/metrics. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/clock.h"
#include "common/list.h"
#include "common/mem.h"
#include "supervisor/acl/acl_rules.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/metrics/scrape.h"

#define SCRAPES_MAX   4 /* at a time: each holds the ids of all tasks */
#define SCRAPE_MAX_MS 60000
#define PIECES        4 /* of one turn: together about half a millisecond */

static const char *const types[] = {
	[METRIC_JSON] = "application/json",
	[METRIC_PROMETHEUS] = "text/plain; version=0.0.4; charset=utf-8",
	[METRIC_OPENMETRICS] = "application/openmetrics-text; version=1.0.0; charset=utf-8",
};

struct metrics_answer {
	struct api_stream base;
	struct sup *sup;
	struct scrape *scrape;
	uint64_t begun_ms;
	struct deferred next_turn;
	unsigned pieces; /* that are left for this turn */
};

static unsigned n_scrapes;

static ssize_t
next_piece(struct api_stream *st, char *buf, size_t max)
{
	struct metrics_answer *a = container_of(st, struct metrics_answer, base);
	ssize_t n = 0;

	/* A client that reads slowly holds memory. */
	if (clock_ms() - a->begun_ms > SCRAPE_MAX_MS)
		return -1;
	if (a->pieces > 0)
		n = scrape_read(a->scrape, buf, max);
	a->pieces = n > 0 ? a->pieces - 1 : 0;
	if (n == 0)
		turn_defer(a->sup, &a->next_turn);
	return n;
}

/* Answers to other clients are sent at the end of a turn, so a turn makes some pieces only. */
static void
on_next_turn(struct sup *sup, struct deferred *d)
{
	struct metrics_answer *a = container_of(d, struct metrics_answer, next_turn);

	a->pieces = PIECES;
	api_stream_wake(sup, &a->base);
}

static void
end_answer(struct api_stream *st)
{
	struct metrics_answer *a = container_of(st, struct metrics_answer, base);

	n_scrapes--;
	turn_forget_deferred(a->sup, &a->next_turn);
	scrape_free(a->scrape);
	free(a);
}

/* Prometheus names the formats that it reads in Accept. A format in the query wins. */
static int
choose_format(const struct api_req *req, enum metric_format *ret, struct err *e)
{
	const char *format = api_query(req, "format"), *accept = str(api_header(req, "Accept"));
	const bool open = strstr(accept, "application/openmetrics-text") != NULL;

	if (!format || !*format)
		*ret = open                           ? METRIC_OPENMETRICS
		       : strstr(accept, "text/plain") ? METRIC_PROMETHEUS
						      : METRIC_JSON;
	else if (strcmp(format, "prometheus") == 0)
		*ret = open ? METRIC_OPENMETRICS : METRIC_PROMETHEUS;
	else if (strcmp(format, "openmetrics") == 0)
		*ret = METRIC_OPENMETRICS;
	else if (strcmp(format, "json") == 0)
		*ret = METRIC_JSON;
	else
		return err_say(e, -EINVAL,
		    "unknown format \"%.32s\": prometheus, openmetrics and json are known", format);
	return 0;
}

/* Answers with an error and returns true if the request is refused. */
static bool
refuse_request(struct sup *sup, struct api_req *req, enum metric_format format)
{
	const bool has_rights = api_backend(sup)->permits && api_permits(req, ACL_AGENT_READ, "");

	/* A task must not see the tasks of others. */
	if (api_task(req) && !has_rights)
		api_reply_error(req, 403, "Permission denied");
	else if (format != METRIC_JSON && !sup->config->telemetry.prometheus)
		api_reply_error(req, 415,
		    "Prometheus is not enabled: the configuration has telemetry { "
		    "prometheus_metrics = false }");
	else if (n_scrapes >= SCRAPES_MAX)
		api_reply_error(req, 503, "%u clients are reading metrics already", n_scrapes);
	else
		return false;
	return true;
}

void
api_get_metrics(struct sup *sup, struct api_req *req)
{
	struct metrics_answer *a;
	enum metric_format format = METRIC_JSON;
	struct err e = { 0 };

	if (choose_format(req, &format, &e) < 0) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	if (refuse_request(sup, req, format))
		return;
	n_scrapes++;
	a = mem_new(struct metrics_answer);
	a->base = (struct api_stream){ .next = next_piece, .done = end_answer, .beats = true };
	a->scrape = scrape_new(sup, format);
	a->begun_ms = clock_ms();
	a->pieces = PIECES;
	a->sup = sup;
	a->next_turn.run = on_next_turn;
	api_reply_stream(req, types[format], &a->base);
}
