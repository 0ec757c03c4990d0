/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lis.h: the listener's state: the connections of its clients, and the questions to the supervisor.
 * Runs in: listener.
 *
 * Clients that ask the same at the same time share one question, so their number costs the
 * supervisor nothing. There is a line for each kind of question, and one question at a time on each
 * line; each has a link of its own: a socket pair that the supervisor made for this one request.
 */
#ifndef DROVER_LISTENER_LIS_H
#define DROVER_LISTENER_LIS_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "common/err.h"
#include "common/list.h"
#include "listener/lis_conn.h"
#include "listener/lis_relay.h"
#include "proto/listen_config.h"

#define LIS_CONNS_MAX 512 /* of one address */
#define LIS_TOKEN_MAX 256

TAILQ_HEAD(lis_conns, lis_conn);

/* One TCP address: its socket, its policy and its connections. */
struct lis_door {
	struct lis_source source;
	int fd;                 /* -1: the configuration has no such address */
	struct ssl_ctx_st *tls; /* NULL: without TLS */
	bool is_api;            /* its connections are relayed */
	bool refuses;           /* its files cannot be used */
	size_t token_len;       /* 0: no token is needed */
	char token[LIS_TOKEN_MAX];
	uint64_t accept_at_ms; /* when descriptors were short: the time of the next try; else 0 */
	size_t n_conns;
	struct lis_conns conns;
};

struct lis_line {
	struct lis_source source;
	enum { LIS_IDLE, LIS_WANTS, LIS_ASKS } state; /* WANTS: a link; ASKS: an answer comes */
	uint32_t link;
	int fd;
	uint64_t since_ms, deadline_ms, not_before_ms;
	struct lis_question question;
	struct lis_reader reader;
	struct lis_conns waiters;
};

struct lis {
	int epoll_fd;
	uint32_t files; /* those that it got: bits 1 << enum config_file */
	bool serves;    /* LIS_SERVE_EV came */
	uint64_t now_ms;
	uint32_t link; /* the last number of a link */
	struct lis_door doors[LISTEN_USES];
	struct lis_relays relays;
	size_t n_relays, relays_max;
	struct lis_line lines[LIS_KINDS];
};

/* Lets the loop watch fd, or changes for what. Returns 0 or -errno. */
int lis_watch(struct lis *l, int op, int fd, uint32_t events, struct lis_source *source);

/* lis_door.c: addresses. */
/* Reads the keys and tokens, after the drop. An address whose files cannot be used is logged, and
 * each connection to it is closed: a process that ended would be started again and again. */
void lis_doors_open(struct lis *l);
/* Begins to accept. Returns false if there is no address. */
bool lis_doors_serve(struct lis *l);
/* Accepts no more. */
void lis_doors_close(struct lis *l);
/* Refuses what waits for an answer, and ends connections between two requests. Returns whether
 * some are left. */
bool lis_doors_finish(struct lis *l);
void lis_door_accept(struct lis *l, struct lis_door *d);
/* Returns whether the request has the token that the address needs. At the API only a read may have
 * neither a token nor a certificate. */
bool lis_door_opens_for(const struct lis_door *d, const struct lis_conn *c);
uint64_t lis_doors_tick(struct lis *l);

/* lis_line.c: questions. */
void lis_lines_init(struct lis *l);
/* Lets the client wait for the answer to its question, or answers it. */
void lis_line_join(struct lis *l, struct lis_conn *c);
void lis_line_leave(struct lis *l, struct lis_conn *c);
/* A link came; it is the line's now. */
void lis_line_on_link(struct lis *l, uint32_t link, int fd);
void lis_line_ready(struct lis *l, struct lis_line *line);
uint64_t lis_lines_tick(struct lis *l);

#endif
