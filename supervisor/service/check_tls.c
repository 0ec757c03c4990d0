// SPDX-License-Identifier: Apache-2.0
/* check_tls.c: requests over TLS, which check-helper makes; it is ended after a while without one.
 * Runs in: supervisor. */
#include "supervisor/service/check_tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <systemd/sd-event.h>

#include "common/authorities.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/core/sup_timer.h"

#define REQUEST_MAX 57344    /* bytes of a request that fit into a message */
#define IDLE_USEC   30000000 /* check-helper is ended after this time without a request */
#define USEC_PER_MS 1000

struct check_tls {
	struct sup_timer idle;
	struct stat authorities; /* those that check-helper has read */
};

void
check_tls_new(struct sup *sup)
{
	sup->check_tls = mem_new(struct check_tls);
}

void
check_tls_free(struct sup *sup)
{
	if (!sup->check_tls)
		return;
	sup_timer_cancel(&sup->check_tls->idle);
	free_p(&sup->check_tls);
}

static void
on_idle(void *arg)
{
	struct sup *sup = arg;

	if (child_busy(sup, IPC_CHECK_HELPER))
		sup_timer_set(sup, &sup->check_tls->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	else
		child_let_go(sup, IPC_CHECK_HELPER);
}

/* check-helper reads the list of authorities at its start and can open no file later. After a
 * change of the list it is replaced, unless requests are in progress. */
static void
check_authorities(struct sup *sup)
{
	struct stat *known = &sup->check_tls->authorities, now = { 0 };

	if (child_busy(sup, IPC_CHECK_HELPER))
		return;
	for (size_t i = 0; i < ELEMENTSOF(authorities_places); i++)
		if (stat(authorities_places[i], &now) == 0)
			break;
	if (now.st_ino == known->st_ino && now.st_dev == known->st_dev &&
	    memcmp(&now.st_ctim, &known->st_ctim, sizeof now.st_ctim) == 0)
		return;
	*known = now;
	child_let_go(sup, IPC_CHECK_HELPER);
}

static void
fill_address(const union check_addr *a, ChkHttpsAskReq *req)
{
	bool v6 = a->sa.sa_family == AF_INET6;

	req->address.data = (uint8_t *)(uintptr_t)(v6 ? (const void *)&a->in6.sin6_addr
						      : (const void *)&a->in.sin_addr);
	req->address.len = v6 ? sizeof a->in6.sin6_addr : sizeof a->in.sin_addr;
	req->port = ntohs(v6 ? a->in6.sin6_port : a->in.sin_port);
}

int
check_tls_ask(struct sup *sup, const struct check_tls_question *q, call_cb *cb, void *arg,
    uint64_t *ret_call, struct err *e)
{
	ChkHttpsAskReq req = CHK_HTTPS_ASK_REQ__INIT;
	char ip[INET6_ADDRSTRLEN] = "";
	uint64_t now;

	if (q->request->len > REQUEST_MAX)
		return err_say(e, -EINVAL,
		    "a request over https may have %d bytes; this one has %zu", REQUEST_MAX,
		    q->request->len);
	fill_address(q->addr, &req);
	(void)inet_ntop(q->addr->sa.sa_family, req.address.data, ip, sizeof ip);
	req.server_name = (char *)(uintptr_t)(q->server_name ? q->server_name : ip);
	req.skip_verify = q->skip_verify;
	req.no_body = q->no_body;
	req.request.data = (uint8_t *)q->request->text;
	req.request.len = q->request->len;
	(void)sd_event_now(sup->event, CLOCK_MONOTONIC, &now);
	req.timeout_ms = q->deadline_usec > now + USEC_PER_MS
			     ? (uint32_t)((q->deadline_usec - now) / USEC_PER_MS)
			     : 1;
	check_authorities(sup);
	*ret_call = chk_call_https_ask(sup, &req, cb, arg);
	sup_timer_set(sup, &sup->check_tls->idle, CLOCK_MONOTONIC, IDLE_USEC, on_idle, sup);
	return 0;
}

void
check_tls_cancel(struct sup *sup, uint64_t call)
{
	ChkHttpsCancelEv ev = CHK_HTTPS_CANCEL_EV__INIT;

	if (!call || !child_call_drop(sup, call))
		return;
	ev.ask = (uint32_t)call;
	child_tell(sup, IPC_CHECK_HELPER, CHK_HTTPS_CANCEL_EV, &ev.base);
}

int
check_tls_take(const ChkHttpsAskRep *rep, struct http_answer *ret, struct err *e)
{
	if (rep->step != CHK_STEP__CHK_STEP_DONE)
		return err_say(e, -EBADMSG, "%s", rep->error);
	http_answer_init(ret, false);
	if (rep->location.len >= sizeof ret->location || rep->body.len >= sizeof ret->body)
		return err_say(e, -EBADMSG, "the answer of check-helper is too long");
	ret->status = (int)rep->status;
	if (rep->location.len) /* data is NULL if it is empty */
		memcpy(ret->location, rep->location.data, rep->location.len);
	if (rep->body.len)
		memcpy(ret->body, rep->body.data, rep->body.len);
	ret->body_len = rep->body.len;
	return 0;
}
