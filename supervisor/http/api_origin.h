/* SPDX-License-Identifier: Apache-2.0 */
/* api_origin.h: where a request came from. Everything that names or judges the sender of a request
 * asks here: a connection that the listener passes on is a socket pair of the supervisor's own, so
 * the credentials of its peer say nothing about the client. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_ORIGIN_H
#define DROVER_SUPERVISOR_HTTP_API_ORIGIN_H

#include <sys/types.h>

struct api_req;
struct api_task;

enum api_origin_kind {
	API_ORIGIN_SOCKET, /* the control socket: uid and pid are the client's */
	API_ORIGIN_TASK,   /* the socket of `task`: uid and pid are those of a process in it */
	API_ORIGIN_HEALTH, /* health { address }: nothing is known about the client */
	API_ORIGIN_TCP,    /* the API over TCP: `address`, and with mutual TLS `certificate` */
};

struct api_origin {
	enum api_origin_kind kind;
	uid_t uid; /* -1: unknown, as always over TCP */
	pid_t pid; /* 0: unknown */
	const struct api_task *task;
	/* As the listener says, "" otherwise; printable ASCII. The name is that of the certificate
	 * by which the client has proven itself. Valid as long as the request. */
	const char *address, *certificate;
};

#define API_ORIGIN_TEXT_SIZE 320

struct api_origin api_origin(const struct api_req *req);
/* Describes the sender for logs and events: "uid 0", or "task web, uid 65534". */
void api_origin_text(const struct api_req *req, char ret[API_ORIGIN_TEXT_SIZE]);

#endif
