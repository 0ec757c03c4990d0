// SPDX-License-Identifier: Apache-2.0
/*
 * reach.c: finds out which addresses reach which. Static, so that it runs in any root.
 *
 *     reach PORT... [-- NAME tcp|udp ADDRESS PORT]...
 *
 * Listens at the ports, tcp and udp, and answers with the address that a request has come from.
 * Prints "NAME|ANSWER" for each attempt: the address that the other side saw, or why there is none.
 * Then prints "end", and listens on. Without ports it ends.
 */
#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define PORTS_MAX 16
#define ANSWER_MS 2000

union address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static void
fail(const char *what)
{
	perror(what);
	exit(1);
}

/* The socket accepts IPv4 and IPv6, or IPv4 alone on a machine without IPv6. */
static int
listen_at(int type, const char *port)
{
	union address at = { .v6 = { .sin6_family = AF_INET6, .sin6_addr = in6addr_any } };
	int fd = socket(AF_INET6, type, 0), off = 0;
	socklen_t size = sizeof at.v6;

	at.v6.sin6_port = htons((uint16_t)atoi(port));
	if (fd < 0) {
		at.v4 = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = at.v6.sin6_port };
		size = sizeof at.v4;
		fd = socket(AF_INET, type, 0);
	} else if (setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) < 0) {
		fail("IPV6_V6ONLY");
	}
	if (fd < 0 || bind(fd, &at.any, size) < 0 || (type == SOCK_STREAM && listen(fd, 64) < 0))
		fail(port);
	return fd;
}

static size_t
write_address(const union address *from, char ret[INET6_ADDRSTRLEN])
{
	const void *bytes = from->any.sa_family == AF_INET ? (const void *)&from->v4.sin_addr
							   : (const void *)&from->v6.sin6_addr;

	if (!inet_ntop(from->any.sa_family, bytes, ret, INET6_ADDRSTRLEN))
		fail("inet_ntop");
	if (strncmp(ret, "::ffff:", 7) == 0)
		memmove(ret, ret + 7, strlen(ret + 7) + 1);
	return strlen(ret);
}

static void
answer(int fd, bool stream)
{
	char text[INET6_ADDRSTRLEN], buf[64];
	union address from;
	socklen_t size = sizeof from;

	if (stream) {
		int peer = accept(fd, &from.any, &size);

		if (peer < 0 || write(peer, text, write_address(&from, text)) < 0)
			perror("accept");
		(void)close(peer);
	} else if (recvfrom(fd, buf, sizeof buf, 0, &from.any, &size) < 0 ||
		   sendto(fd, text, write_address(&from, text), 0, &from.any, size) < 0) {
		perror("recvfrom");
	}
}

static void
serve(const int *fds, nfds_t n)
{
	struct pollfd wait[2 * PORTS_MAX];

	for (nfds_t i = 0; i < n; i++)
		wait[i] = (struct pollfd){ .fd = fds[i], .events = POLLIN };
	while (poll(wait, n, -1) >= 0)
		for (nfds_t i = 0; i < n; i++)
			if (wait[i].revents)
				answer(wait[i].fd, i % 2 == 0);
}

static const char *
attempt(bool stream, const char *address, const char *port, char ret[INET6_ADDRSTRLEN])
{
	union address to = { .v4 = { .sin_family = AF_INET } };
	struct timeval limit = { .tv_sec = ANSWER_MS / 1000 };
	bool six = strchr(address, ':') != NULL;
	int fd = socket(six ? AF_INET6 : AF_INET, stream ? SOCK_STREAM : SOCK_DGRAM, 0);
	ssize_t n = -1;

	if (six)
		to.v6 = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	to.v4.sin_port = htons((uint16_t)atoi(port)); /* both have it at one place */
	if (inet_pton(to.any.sa_family, address,
		six ? (void *)&to.v6.sin6_addr : (void *)&to.v4.sin_addr) != 1)
		return "not an address";
	(void)setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
	(void)setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
	if (connect(fd, &to.any, six ? sizeof to.v6 : sizeof to.v4) == 0 &&
	    (stream || write(fd, "x", 1) == 1))
		n = read(fd, ret, INET6_ADDRSTRLEN - 1);
	ret[n > 0 ? n : 0] = '\0';
	if (n < 0)
		(void)strcpy(ret, errno == ECONNREFUSED                     ? "refused"
				  : errno == EAGAIN || errno == EINPROGRESS ? "no answer"
									    : "unreachable");
	(void)close(fd);
	return *ret ? ret : "closed";
}

int
main(int argc, char **argv)
{
	char text[INET6_ADDRSTRLEN];
	int fds[2 * PORTS_MAX], i = 1;
	nfds_t n = 0;

	for (; i < argc && strcmp(argv[i], "--") != 0 && n < 2 * PORTS_MAX; i++) {
		fds[n++] = listen_at(SOCK_STREAM, argv[i]);
		fds[n++] = listen_at(SOCK_DGRAM, argv[i]);
	}
	if (n > 0 && fork() == 0) {
		(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
		serve(fds, n);
	}
	for (i++; i + 3 < argc; i += 4) {
		printf("%s|%s\n", argv[i],
		    attempt(strcmp(argv[i + 1], "tcp") == 0, argv[i + 2], argv[i + 3], text));
		(void)fflush(stdout);
	}
	printf("end\n");
	(void)fflush(stdout);
	if (n > 0)
		(void)pause();
	return 0;
}
