/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lis_head.h: parses the head of a client's request, strictly: what two programs could understand
 * in different ways is refused. Pure. Runs in: listener.
 */
#ifndef DROVER_LISTENER_LIS_HEAD_H
#define DROVER_LISTENER_LIS_HEAD_H

#include <stdbool.h>
#include <stddef.h>

#define LIS_HEAD_MAX   8192 /* bytes of a request's first line and headers */
#define LIS_TARGET_MAX 1024

/* The formats of metrics that a client names in Accept; the supervisor's table of them has more. */
enum lis_accept { LIS_ACCEPT_ANY, LIS_ACCEPT_TEXT, LIS_ACCEPT_OPENMETRICS };

/* A parsed head. Strings point into its bytes and have no NUL. */
struct lis_head {
	size_t len;   /* of the head, with the empty line */
	bool is_head; /* the method is HEAD */
	bool writes;  /* the method is none of GET and HEAD, or it has a body */
	bool keeps;   /* the client permits another request on this connection */
	enum lis_accept accept;
	const char *token; /* of "Authorization: Bearer" or X-Nomad-Token; NULL: none */
	size_t token_len;
	const char *target;
	size_t target_len;
};

/* For the API, api: also methods that write, bodies, and long paths. Returns 1; 0 if more bytes are
 * needed; or a negative status such as -400 with the sentence in *ret_why: then the connection must
 * be closed. */
int lis_head_parse(
    const char *buf, size_t len, bool api, struct lis_head *ret, const char **ret_why);

#endif
