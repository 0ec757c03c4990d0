/* SPDX-License-Identifier: Apache-2.0 */
/*
 * http_target.h: where a check connects: an address and the path of the request. Addresses are IP
 * addresses, because the work loop does not resolve names. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_HTTP_TARGET_H
#define DROVER_SUPERVISOR_SERVICE_HTTP_TARGET_H

#include <netinet/in.h>
#include <stdbool.h>
#include <stdint.h>

#include "common/err.h"
#include "common/http_answer.h"

union check_addr {
	struct sockaddr sa;
	struct sockaddr_in in;
	struct sockaddr_in6 in6;
};

#define CHECK_ADDR_SIZE (INET6_ADDRSTRLEN + 8)

/* Takes "192.0.2.1", "::1" or "[::1]". Returns 0, or -EINVAL with *e. */
int check_addr_parse(const char *ip, int64_t port, union check_addr *ret, struct err *e);
socklen_t check_addr_len(const union check_addr *a);
/* Formats the address as "192.0.2.1:80" or "[::1]:80". */
void check_addr_format(const union check_addr *a, char ret[CHECK_ADDR_SIZE]);

struct http_target {
	union check_addr addr;
	bool tls;
	char path[HTTP_TARGET_MAX]; /* with its query; begins with '/' */
};

/* Sets the path of the request line. path may lack the '/' at its beginning and have spaces.
 * Returns 0, or -EINVAL with *e if it is too long. */
int http_target_set_path(struct http_target *t, const char *path, struct err *e);
/* Changes t to where a redirect leads. Returns 0, or -EINVAL with *e, and t is unchanged. */
int http_target_follow(struct http_target *t, const char *location, struct err *e);

#endif
