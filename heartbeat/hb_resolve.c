// SPDX-License-Identifier: Apache-2.0
/* hb_resolve.c: looks up names in a child. Runs in: heartbeat, and its child. */
#include "heartbeat/hb_resolve.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/log.h"
#include "heartbeat/hb.h"
#include "heartbeat/hb_resolve_filter.h"
#include "heartbeat/hb_server.h"

#define ADDRESSES_MAX 16

const struct proc_child hb_resolve_child = {
	.name = "heartbeat-resolver",
	.user = "own",
	.privs = { .uid = 1, .no_new_privs = true, .filter = &hb_resolve_prog },
};

/* Chooses one of the addresses at random, so that a retry can get another one. */
static void
look_up(struct hb_resolve_answer *a)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
	const struct addrinfo *found[ADDRESSES_MAX];
	struct addrinfo *list = NULL;
	size_t n = 0;

	a->code = getaddrinfo(a->host, NULL, &hints, &list);
	if (a->code)
		return;
	for (const struct addrinfo *i = list; i && n < ADDRESSES_MAX; i = i->ai_next)
		if ((i->ai_family == AF_INET || i->ai_family == AF_INET6) &&
		    i->ai_addrlen <= sizeof a->address)
			found[n++] = i;
	if (n > 0) {
		const struct addrinfo *one = found[hb_random(n)];

		memcpy(&a->address, one->ai_addr, one->ai_addrlen);
	} else {
		a->code = EAI_NODATA;
	}
	freeaddrinfo(list);
}

static void __attribute__((noreturn)) serve(int fd, pid_t parent, const struct privs *privs)
{
	static struct hb_resolve_answer a;
	struct err e = { 0 };

	if (fd_pack(&fd, 1, STDERR_FILENO + 1) < 0)
		_exit(1);
	fd = STDERR_FILENO + 1;
	if (privs_drop(privs, &e) < 0) {
		log_error("%s", e.msg);
		_exit(1);
	}
	privs_die_with_parent(parent);
	while (recv(fd, &a, sizeof a, 0) == (ssize_t)sizeof a) {
		a.host[sizeof a.host - 1] = '\0';
		look_up(&a);
		if (send(fd, &a, sizeof a, MSG_NOSIGNAL) < 0)
			break;
	}
	_exit(0);
}

static bool
has_name(const struct agent_config *config)
{
	struct sockaddr_storage address;
	char host[HB_RPC_ADDR_SIZE];
	unsigned port;

	for (uint32_t i = 0; i < config->n_servers; i++)
		if (hb_server_split(config->servers[i], host, &port) == 0 &&
		    hb_server_address(host, port, &address) == 0)
			return true;
	return false;
}

int
hb_resolve_start(
    const struct agent_config *config, const struct proc_args *args, int *ret_fd, struct err *e)
{
	struct privs privs = hb_resolve_child.privs;
	pid_t parent = getpid(), pid;
	int pair[2];

	*ret_fd = -1;
	if (!has_name(config))
		return 0;
	if (args->uid == 0 || args->gid == 0)
		return err_say(e, -EPERM, "the resolver must not run as root");
	privs.uid = args->uid;
	privs.gid = args->gid;
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make the resolver's socket");
	pid = fork();
	if (pid == 0)
		serve(pair[1], parent, &privs);
	(void)close(pair[1]);
	if (pid < 0 || fd_set_nonblock(pair[0], true) < 0) {
		int r = err_set(e, -errno, "fork the resolver");

		(void)close(pair[0]);
		return r;
	}
	*ret_fd = pair[0];
	return 0;
}

int
hb_resolve_ask(int fd, const char *host)
{
	struct hb_resolve_answer a = { 0 };

	if (strlen(host) >= sizeof a.host)
		return -ENAMETOOLONG;
	(void)strcpy(a.host, host);
	return send(fd, &a, sizeof a, MSG_NOSIGNAL) < 0 ? -errno : 0;
}

int
hb_resolve_take(int fd, struct hb_resolve_answer *ret)
{
	ssize_t n = recv(fd, ret, sizeof *ret, 0);

	if (n < 0 && errno == EAGAIN)
		return -EAGAIN;
	if (n != (ssize_t)sizeof *ret)
		return 0;
	ret->host[sizeof ret->host - 1] = '\0';
	return 1;
}
