// SPDX-License-Identifier: Apache-2.0
/* sup_queue.c: requests to helpers that take long. Runs in: supervisor. */
#include "supervisor/core/sup_queue.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/text.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/core/sup_timer.h"

#define IDLE_USEC 30000000
#define FULL_USEC 10000000 /* between two hints to a helper all of whose places are taken */
#define SLOW_MS   60000

typedef uint64_t send_fn(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg);

static uint64_t
send_job(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return par_call_job_parse(sup, req, fd, cb, arg);
}

static uint64_t
send_config(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return par_call_config_evaluate(sup, req, fd, cb, arg);
}

static uint64_t
send_fetch(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return fet_call_artifact_get(sup, req, fd, cb, arg);
}

static void
hint_fetch(struct sup *sup)
{
	const struct fet_others_wait_ev ev = { .slow_ms = SLOW_MS };

	child_tell(sup, IPC_FETCHER, FET_OTHERS_WAIT_EV, &ev);
}

static uint64_t
send_place(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return file_call_artifact_place(sup, req, cb, arg);
}

static uint64_t
send_render(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return ren_call_render(sup, req, fd, cb, arg);
}

static uint64_t
send_image(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return img_call_image_pull(sup, req, fd, cb, arg);
}

static uint64_t
send_digest(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return img_call_archive_digest(sup, req, fd, cb, arg);
}

static uint64_t
send_load(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return img_call_archive_load(sup, req, fd, cb, arg);
}

static uint64_t
send_blobs_drop(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return img_call_blobs_drop(sup, req, cb, arg);
}

static uint64_t
send_unpack(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return unp_call_layer_unpack(sup, req, cb, arg);
}

static uint64_t
send_layer_remove(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return unp_call_layer_remove(sup, req, cb, arg);
}

static uint64_t
send_layer_list(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return unp_call_layer_list(sup, req, cb, arg);
}

static uint64_t
send_network(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return net_call_network_make(sup, req, cb, arg);
}

static uint64_t
send_network_drop(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return net_call_network_drop(sup, req, cb, arg);
}

static uint64_t
send_network_check(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return net_call_network_check(sup, req, cb, arg);
}

static uint64_t
send_plugin_list(struct sup *sup, const void *req, int fd, call_cb *cb, void *arg)
{
	return net_call_plugin_list(sup, req, cb, arg);
}

/* at_once is below WORKERS_MAX. Job files and configurations do not wait for each other. */
static const struct kind {
	enum ipc_peer peer;
	unsigned at_once;
	bool lets_go; /* the helper is ended when it is idle */
	send_fn *send;
	size_t size;
	void (*hint)(struct sup *sup); /* tells the helper that requests wait for places, or NULL */
} kinds[QUEUES] = {
	[QUEUE_JOB] = { IPC_JOB_PARSER, 2, true, send_job, sizeof(struct par_job_parse_req), NULL },
	[QUEUE_CONFIG] = { IPC_JOB_PARSER, 2, true, send_config,
	    sizeof(struct par_config_evaluate_req), NULL },
	[QUEUE_FETCH] = { IPC_FETCHER, 16, true, send_fetch, sizeof(struct fet_artifact_get_req),
	    hint_fetch },
	[QUEUE_PLACE] = { IPC_FILE_HELPER, 8, false, send_place,
	    sizeof(struct file_artifact_place_req), NULL },
	[QUEUE_RENDER] = { IPC_TEMPLATE_RENDERER, 4, true, send_render,
	    sizeof(struct ren_render_req), NULL },
	[QUEUE_IMAGE] = { IPC_IMAGE_FETCHER, 4, true, send_image, sizeof(struct img_image_pull_req),
	    NULL },
	[QUEUE_BLOBS_DROP] = { IPC_IMAGE_FETCHER, 1, true, send_blobs_drop,
	    sizeof(struct img_blobs_drop_req), NULL },
	[QUEUE_DIGEST] = { IPC_IMAGE_FETCHER, 4, true, send_digest,
	    sizeof(struct img_archive_digest_req), NULL },
	[QUEUE_LOAD] = { IPC_IMAGE_FETCHER, 2, true, send_load, sizeof(struct img_archive_load_req),
	    NULL },
	[QUEUE_UNPACK] = { IPC_IMAGE_UNPACKER, 2, true, send_unpack,
	    sizeof(struct unp_layer_unpack_req), NULL },
	[QUEUE_LAYER_REMOVE] = { IPC_IMAGE_UNPACKER, 2, true, send_layer_remove,
	    sizeof(struct unp_layer_remove_req), NULL },
	[QUEUE_LAYERS] = { IPC_IMAGE_UNPACKER, 1, true, send_layer_list,
	    sizeof(struct unp_layer_list_req), NULL },
	[QUEUE_NETWORK] = { IPC_NETWORK_HELPER, 4, true, send_network,
	    sizeof(struct net_network_make_req), NULL },
	[QUEUE_NETWORK_DROP] = { IPC_NETWORK_HELPER, 4, true, send_network_drop,
	    sizeof(struct net_network_drop_req), NULL },
	[QUEUE_NET_CHECK] = { IPC_NETWORK_HELPER, 2, true, send_network_check,
	    sizeof(struct net_network_check_req), NULL },
	[QUEUE_PLUGIN_LIST] = { IPC_NETWORK_HELPER, 1, true, send_plugin_list,
	    sizeof(struct net_plugin_list_req), NULL },
};

struct queued {
	TAILQ_ENTRY(queued) link; /* in `waiting`, and then in `sent` */
	struct sup *sup;
	enum queue queue;
	uint64_t owner; /* 0: it has none */
	void *req;
	bool sent;
	int fd;
	call_cb *cb; /* NULL: forgotten */
	void *arg;
};

/* A helper without requests. */
struct idle {
	struct sup *sup;
	enum ipc_peer peer;
	struct sup_timer timer;
};

/* The requests of one kind. */
struct line {
	struct sup *sup;
	enum queue queue;
	TAILQ_HEAD(, queued) waiting, sent;
	unsigned n_sent;
	struct sup_timer full; /* set while some wait and all places are taken */
};

struct queues {
	struct line v[QUEUES];
	struct idle idle[IPC_PEERS]; /* by enum ipc_peer */
};

void
queues_new(struct sup *sup)
{
	sup->queues = mem_new(struct queues);
	for (size_t i = 0; i < QUEUES; i++) {
		sup->queues->v[i].sup = sup;
		sup->queues->v[i].queue = i;
		TAILQ_INIT(&sup->queues->v[i].waiting);
		TAILQ_INIT(&sup->queues->v[i].sent);
		sup->queues->idle[kinds[i].peer].sup = sup;
		sup->queues->idle[kinds[i].peer].peer = kinds[i].peer;
	}
}

static void
free_request(struct queued *q)
{
	close_p(&q->fd);
	free(q->req);
	free(q);
}

void
queue_forget(struct queued *q)
{
	if (!q)
		return;
	q->cb = NULL;
	if (q->sent)
		return;
	TAILQ_REMOVE(&q->sup->queues->v[q->queue].waiting, q, link);
	free_request(q);
}

void
queue_hand_over(struct queued *q, call_cb *cb, void *arg)
{
	q->cb = cb;
	q->arg = arg;
}

void
queues_free(struct sup *sup)
{
	struct queued *q;

	if (!sup->queues)
		return;
	for (size_t i = 0; i < QUEUES; i++) {
		while ((q = TAILQ_FIRST(&sup->queues->v[i].waiting)))
			queue_forget(q);
		sup_timer_cancel(&sup->queues->idle[kinds[i].peer].timer);
		sup_timer_cancel(&sup->queues->v[i].full);
	}
	free(sup->queues);
	sup->queues = NULL;
}

bool
queue_has_begun(const struct queued *q)
{
	return q->sent;
}

static void
on_idle(void *arg)
{
	struct idle *idle = arg;

	if (child_busy(idle->sup, idle->peer))
		sup_timer_set(idle->sup, &idle->timer, CLOCK_MONOTONIC, IDLE_USEC, on_idle, idle);
	else
		child_let_go(idle->sup, idle->peer);
}

static void send_next(struct sup *sup, enum queue queue);

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct queued *q = arg;
	enum queue queue = q->queue;
	cleanup_close int result = fd;
	call_cb *cb = q->cb;

	arg = q->arg;
	TAILQ_REMOVE(&sup->queues->v[queue].sent, q, link);
	free_request(q);
	sup->queues->v[queue].n_sent--;
	send_next(sup, queue);
	if (cb)
		cb(sup, arg, r, rep, steal_fd(&result), e);
}

static bool
has_share(const struct sup *sup, const struct queued *q)
{
	const unsigned at_once = kinds[q->queue].at_once, n = sup->queues->v[q->queue].n_sent;
	const struct queued *sent;
	unsigned own = 0;

	if (!q->owner)
		return true;
	TAILQ_FOREACH (sent, &sup->queues->v[q->queue].sent, link)
		own += sent->owner == q->owner;
	return own < (at_once - (n - own) + 1) / 2;
}

static struct queued *
first_with_share(const struct sup *sup, enum queue queue)
{
	struct queued *q;

	TAILQ_FOREACH (q, &sup->queues->v[queue].waiting, link)
		if (has_share(sup, q))
			return q;
	return NULL;
}

static bool
is_full(const struct line *line)
{
	return line->n_sent == kinds[line->queue].at_once && !TAILQ_EMPTY(&line->waiting);
}

static void
on_full(void *arg)
{
	struct line *line = arg;

	if (!is_full(line))
		return;
	kinds[line->queue].hint(line->sup);
	sup_timer_set(line->sup, &line->full, CLOCK_MONOTONIC, FULL_USEC, on_full, line);
}

static void
send_next(struct sup *sup, enum queue queue)
{
	const struct kind *kind = &kinds[queue];
	struct line *line = &sup->queues->v[queue];
	struct idle *idle = &sup->queues->idle[kind->peer];
	struct queued *q;

	while (line->n_sent < kind->at_once && (q = first_with_share(sup, queue))) {
		TAILQ_REMOVE(&line->waiting, q, link);
		TAILQ_INSERT_TAIL(&line->sent, q, link);
		q->sent = true;
		line->n_sent++;
		(void)kind->send(sup, q->req, steal_fd(&q->fd), on_answer, q);
		if (kind->lets_go)
			sup_timer_set(sup, &idle->timer, CLOCK_MONOTONIC, IDLE_USEC, on_idle, idle);
	}
	if (kind->hint && is_full(line) && !sup_timer_is_set(&line->full))
		sup_timer_set(sup, &line->full, CLOCK_MONOTONIC, FULL_USEC, on_full, line);
}

struct queued *
queue_ask_for(struct sup *sup, enum queue queue, uint64_t owner, const void *req, int fd,
    call_cb *cb, void *arg)
{
	struct queued *q = mem_new(struct queued);

	*q = (struct queued){ .sup = sup,
		.queue = queue,
		.owner = owner,
		.req = mem_alloc(kinds[queue].size),
		.fd = fd,
		.cb = cb,
		.arg = arg };
	memcpy(q->req, req, kinds[queue].size);
	TAILQ_INSERT_TAIL(&sup->queues->v[queue].waiting, q, link);
	send_next(sup, queue);
	return q;
}

struct queued *
queue_ask(struct sup *sup, enum queue queue, const void *req, int fd, call_cb *cb, void *arg)
{
	return queue_ask_for(sup, queue, 0, req, fd, cb, arg);
}

int
queue_texts(const char *first, size_t first_len, const char *second, size_t second_len)
{
	struct text both = { 0 };
	int fd;

	text_append(&both, first, first_len);
	text_append(&both, second, second_len);
	fd = fd_memfd_sealed("texts", both.text, both.len);
	explicit_bzero(both.text, both.len); /* it may have secrets */
	text_done(&both);
	return fd;
}

void
queue_explain(enum queue queue, int r, const char *what, const struct err *why, struct err *ret)
{
	if (r == -EIO || r == -ETIMEDOUT) /* its worker was killed */
		(void)err_say(
		    ret, r, "%s takes more time or memory to evaluate than is allowed", what);
	else if (r == -ECONNRESET)
		(void)err_say(ret, r, "%s ended before it had evaluated %s",
		    ipc_peer_name(kinds[queue].peer), what);
	else
		(void)err_say(ret, r, "%s", why->msg);
}
