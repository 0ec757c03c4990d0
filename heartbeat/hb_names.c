// SPDX-License-Identifier: Apache-2.0
/* hb_names.c: looks up the names of the configured servers for a probe. Runs in: heartbeat. */
#include "heartbeat/hb_names.h"

#include <errno.h>
#include <netdb.h>
#include <string.h>

#include "heartbeat/hb_ipc.h"
#include "heartbeat/hb_link.h"
#include "heartbeat/hb_server.h"
#include "proto/heartbeat.pb-c.h"

/* Less than the probe waits for heartbeat. A name server that is silent makes the C library wait
 * for 10 s, so a look-up that takes this long has failed. */
#define ANSWER_MS 7000

_Static_assert(sizeof(((struct hb *)0)->names.asked) == HB_RPC_ADDR_SIZE, "the size of a name");

static void
answer(struct hb *hb, HbNamesRep__State state, const char *sentence)
{
	HbNamesRep rep = HB_NAMES_REP__INIT;

	if (hb->names.serial == 0)
		return;
	rep.state = state;
	rep.sentence = (char *)sentence;
	hb_ipc_tell(hb, HB_NAMES_REP, hb->names.serial, &rep.base, -1);
	hb->names.serial = 0;
}

static void
fail(struct hb *hb, HbNamesRep__State state, const char *why)
{
	struct err e = { 0 };

	(void)err_say(&e, -EHOSTUNREACH, "look up the server %s: %s", hb->names.asked, why);
	answer(hb, state, e.msg);
}

/* Asks for the next name that is no address. At the end there is an answer. */
static void
ask_next(struct hb *hb)
{
	struct hb_names *n = &hb->names;
	struct sockaddr_storage address;
	unsigned port;

	n->asked[0] = '\0';
	while (n->next < hb->config->n_servers) {
		const char *name = hb->config->servers[n->next++];

		if (hb_server_split(name, n->asked, &port) < 0 ||
		    hb_server_address(n->asked, port, &address))
			continue;
		if (hb_link_resolve(hb->link, n->asked) == 0)
			return;
		fail(hb, HB_NAMES_REP__STATE__FAILED, "the resolver has ended");
	}
	n->asked[0] = '\0';
	if (n->missing[0])
		answer(hb, HB_NAMES_REP__STATE__MISSING, n->missing);
	else
		answer(hb, HB_NAMES_REP__STATE__GOOD, "");
}

void
hb_names_on_req(struct hb *hb, uint32_t serial)
{
	struct hb_names *n = &hb->names;

	answer(hb, HB_NAMES_REP__STATE__FAILED, "another probe has begun");
	n->serial = serial;
	n->since_ms = hb->now_ms;
	if (!hb->link) {
		answer(hb, HB_NAMES_REP__STATE__GOOD, "");
		return;
	}
	/* A look-up that is still going on from the last probe answers this one too. */
	if (n->asked[0])
		return;
	n->next = 0;
	n->missing[0] = '\0';
	ask_next(hb);
}

void
hb_names_on_answer(struct hb *hb, const struct hb_resolve_answer *a)
{
	struct hb_names *n = &hb->names;
	struct err e = { 0 };

	if (!n->asked[0] || strcmp(n->asked, a->host) != 0)
		return;
	if (a->code == EAI_NONAME || a->code == EAI_NODATA) {
		(void)err_say(&e, -ENOENT, "there is no address for the server %s", n->asked);
		(void)strcpy(n->missing, e.msg);
	} else if (a->code) {
		fail(hb, HB_NAMES_REP__STATE__FAILED, gai_strerror(a->code));
		n->asked[0] = '\0'; /* the others would take as long */
		return;
	}
	ask_next(hb);
}

void
hb_names_lose(struct hb *hb)
{
	fail(hb, HB_NAMES_REP__STATE__FAILED, "the resolver has ended");
	hb->names.asked[0] = '\0';
}

uint64_t
hb_names_tick(struct hb *hb)
{
	const struct hb_names *n = &hb->names;

	if (n->serial == 0)
		return UINT64_MAX;
	if (hb->now_ms - n->since_ms < ANSWER_MS)
		return n->since_ms + ANSWER_MS;
	fail(hb, HB_NAMES_REP__STATE__LATE, "not done after 7 seconds");
	return UINT64_MAX;
}
