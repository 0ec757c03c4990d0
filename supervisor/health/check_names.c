// SPDX-License-Identifier: Apache-2.0
/* check_names.c: has heartbeat look up the names of the configured servers. Runs in: supervisor. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "proto/heartbeat.pb-c.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_child.h"
#include "supervisor/health/check_memory.h"

#define ANSWER_MS 10000 /* heartbeat itself answers after 7 s */

struct names_check {
	struct check c;
	uint64_t call;
};

static void
on_late(struct check *c)
{
	struct names_check *n = container_of(c, struct names_check, c);

	child_call_cancel(c->sup, n->call);
	free(n);
}

/* A resolver is reached by the network, and a lost network makes the node stalled, not unhealthy:
 * it can do its work. So this component never fails. */
static void
on_answer(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	const HbNamesRep *rep = msg;
	struct names_check *n = arg;

	if (r < 0)
		check_end(&n->c, HEALTH_UNKNOWN, "not checked: %s", e->msg);
	else if (rep->state == HB_NAMES_REP__STATE__GOOD)
		check_end(&n->c, HEALTH_OK, NULL);
	else
		check_end(&n->c, HEALTH_DEGRADED, "%s", rep->sentence);
	free(n);
}

/* "host:port", "[address]:port", or either without a port. */
static bool
is_name(const char *server)
{
	struct in_addr four;
	struct in6_addr six;
	char host[INET_ADDRSTRLEN + 1];

	if (server[0] == '[' || inet_pton(AF_INET6, server, &six) == 1)
		return false;
	(void)snprintf(host, sizeof host, "%.*s", (int)strcspn(server, ":"), server);
	return inet_pton(AF_INET, host, &four) != 1;
}

static bool
has_names(const struct agent_config *config)
{
	for (uint32_t i = 0; i < config->n_servers; i++)
		if (is_name(config->servers[i]))
			return true;
	return false;
}

void
check_names(struct sup *sup)
{
	HbNamesReq req = HB_NAMES_REQ__INIT;
	struct names_check *n;

	if (!has_names(sup->config))
		return;
	if (!check_is_well(sup, "state") || !check_is_well(sup, "helper/heartbeat")) {
		check_report(sup, "dns", HEALTH_UNKNOWN, "not checked: heartbeat does not answer");
		return;
	}
	n = mem_new(struct names_check);
	*n = (struct names_check){ 0 };
	check_begin(&n->c, sup, "dns", on_late);
	check_step(&n->c, "look up the names of the servers", ANSWER_MS);
	n->call = hb_call_names(sup, &req, on_answer, n);
}
