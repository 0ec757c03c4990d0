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
#include "listener/lis_answer.h"
#include "listener/lis_gate.h"
#include "listener/lis_head.h"
#include "proto/listen_config.h"

#define LIS_CONNS_MAX 512 /* of one address */
#define LIS_TOKEN_MAX 256

/* The kind of object that owns a descriptor of the loop: the first member of that object. */
struct lis_source {
	enum lis_source_kind { LIS_DOOR, LIS_CONN, LIS_LINE } kind;
};

TAILQ_HEAD(lis_conns, lis_conn);

/* One TCP address: its socket, its policy and its connections. */
struct lis_door {
	struct lis_source source;
	int fd;                 /* -1: the configuration has no such address */
	struct ssl_ctx_st *tls; /* NULL: without TLS */
	size_t token_len;       /* 0: no token is needed */
	char token[LIS_TOKEN_MAX];
	uint64_t accept_at_ms; /* when descriptors were short: the time of the next try; else 0 */
	size_t n_conns;
	struct lis_conns conns;
};

enum lis_conn_state {
	LIS_SHAKES, /* the handshake of TLS */
	LIS_READS,  /* the head of a request */
	LIS_WAITS,  /* on a line, for its answer */
	LIS_WRITES, /* the answer */
	LIS_DRAINS, /* after the last answer, until the client closes: otherwise it may not arrive
		     */
};

struct lis_conn {
	struct lis_source source;
	TAILQ_ENTRY(lis_conn) all, waits;
	struct lis_door *door;
	int fd;
	struct ssl_st *ssl; /* NULL: without TLS */
	enum lis_conn_state state;
	uint64_t since_ms, deadline_ms;
	struct in6_addr from; /* the client; of IPv6 its /64 */
	struct lis_head head;
	struct lis_question question;
	char *in; /* LIS_HEAD_MAX bytes while it reads; NULL: none came yet */
	size_t in_len;
	char out[512]; /* the head of the answer, or all of a short one */
	size_t out_len, out_at, body_at;
	struct lis_answer *answer; /* NULL: the listener's own */
	bool closes;               /* after the answer */
	bool served;               /* it has had an answer */
	bool shakes;               /* the first byte of its handshake was seen */
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
	struct lis_line lines[LIS_KINDS];
};

/* Lets the loop watch fd, or changes for what. Returns 0 or -errno. */
int lis_watch(struct lis *l, int op, int fd, uint32_t events, struct lis_source *source);

/* lis_door.c: addresses. */
/* Reads the keys and tokens, after the drop. Returns 0, or -errno with *e. */
int lis_doors_open(struct lis *l, struct err *e);
/* Begins to accept. Returns false if there is no address. */
bool lis_doors_serve(struct lis *l);
/* Accepts no more. */
void lis_doors_close(struct lis *l);
/* Refuses what waits for an answer, and ends connections between two requests. Returns whether
 * some are left. */
bool lis_doors_finish(struct lis *l);
void lis_door_accept(struct lis *l, struct lis_door *d);
/* Returns whether the request has the token that the address needs. */
bool lis_door_opens_for(const struct lis_door *d, const struct lis_head *head);
uint64_t lis_doors_tick(struct lis *l);

/* lis_conn.c: clients. */
/* A connection that was accepted; it is closed if there is no memory. */
void lis_conn_new(struct lis *l, struct lis_door *d, int fd, const struct in6_addr *from);
void lis_conn_end(struct lis *l, struct lis_conn *c);
/* For lis_doors_finish(). */
void lis_conn_finish(struct lis *l, struct lis_conn *c);
void lis_conn_ready(struct lis *l, struct lis_conn *c, uint32_t events);
/* Answers a client that waits; adds a reference to the answer. */
void lis_conn_answer(struct lis *l, struct lis_conn *c, struct lis_answer *answer);
void lis_conn_refuse(struct lis *l, struct lis_conn *c, int status, const char *why);
/* Ends what has reached its deadline. Returns the next one; UINT64_MAX: none. */
uint64_t lis_conns_tick(struct lis *l, struct lis_door *d);

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
