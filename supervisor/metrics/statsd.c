// SPDX-License-Identifier: Apache-2.0
/*
 * statsd.c: sends the metrics over UDP. The supervisor does it itself: it may use such sockets
 * anyway, for checks of services, and reads nothing from this one. Runs in: supervisor.
 */
#include "supervisor/metrics/statsd.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/list.h"
#include "common/log.h"
#include "common/mem.h"
#include "supervisor/core/sup_timer.h"
#include "supervisor/core/sup_turn.h"
#include "supervisor/metrics/scrape.h"

#define PACKET_BYTES    1432 /* fits into a frame of Ethernet */
#define PIECES_PER_TURN 4

struct statsd {
	struct sup *sup;
	struct sockaddr_storage to;
	socklen_t to_len;
	int fd;
	bool failed; /* the last packet was not sent */
	struct sup_timer timer;
	struct deferred next_turn;
	struct scrape *scrape; /* NULL: nothing is being sent */
	char packet[PACKET_BYTES];
	size_t len;
};

static void send_soon(struct statsd *d);

/* The configuration was checked: it is "HOST:PORT" with an address or localhost. */
static void
read_address(struct statsd *d, const char *text)
{
	struct sockaddr_in6 *six = (struct sockaddr_in6 *)&d->to;
	struct sockaddr_in *four = (struct sockaddr_in *)&d->to;
	cleanup_free char *host = mem_strdup(text);
	char *colon = strrchr(host, ':');
	const uint16_t port = htons((uint16_t)atoi(colon + 1));

	*colon = '\0';
	if (host[0] == '[') {
		host[strlen(host) - 1] = '\0';
		*six = (struct sockaddr_in6){ .sin6_family = AF_INET6, .sin6_port = port };
		(void)inet_pton(AF_INET6, host + 1, &six->sin6_addr);
		d->to_len = sizeof *six;
		return;
	}
	*four = (struct sockaddr_in){ .sin_family = AF_INET, .sin_port = port };
	(void)inet_pton(
	    AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host, &four->sin_addr);
	d->to_len = sizeof *four;
}

/* Sends what has been gathered. A packet that is lost is not sent again. */
static void
flush_packet(struct statsd *d)
{
	ssize_t n;

	if (d->len == 0)
		return;
	n = sendto(d->fd, d->packet, d->len, MSG_DONTWAIT | MSG_NOSIGNAL,
	    (const struct sockaddr *)&d->to, d->to_len);
	if (n < 0 && !d->failed)
		log_warn("metrics cannot be sent to %s: %s",
		    d->sup->config->telemetry.statsd_address, strerror(errno));
	d->failed = n < 0;
	d->len = 0;
}

/* A line longer than a packet is left out. */
static void
add_line(struct statsd *d, const char *line, size_t len)
{
	if (len > sizeof d->packet)
		return;
	if (d->len + len > sizeof d->packet)
		flush_packet(d);
	memcpy(d->packet + d->len, line, len);
	d->len += len;
}

static void
send_piece(struct statsd *d, const char *piece, size_t len)
{
	const char *end;

	for (; len > 0 && (end = memchr(piece, '\n', len)); piece = end + 1) {
		const size_t line = (size_t)(end + 1 - piece);

		add_line(d, piece, line);
		len -= line;
	}
}

static void
on_continue(void *arg)
{
	struct statsd *d = arg;

	turn_defer(d->sup, &d->next_turn);
}

/* Sends some pieces in a turn, and goes on in a moment. */
static void
on_next_turn(struct sup *sup, struct deferred *deferred)
{
	struct statsd *d = container_of(deferred, struct statsd, next_turn);
	const char *piece;
	size_t len;

	for (int i = 0; i < PIECES_PER_TURN; i++) {
		if (!scrape_piece(d->scrape, &piece, &len)) {
			flush_packet(d);
			scrape_free(steal_ptr(&d->scrape));
			send_soon(d);
			return;
		}
		send_piece(d, piece, len);
	}
	sup_timer_set(sup, &d->timer, CLOCK_MONOTONIC, 0, on_continue, d);
}

static void
on_time(void *arg)
{
	struct statsd *d = arg;

	d->scrape = scrape_new(d->sup, METRIC_STATSD);
	turn_defer(d->sup, &d->next_turn);
}

static void
send_soon(struct statsd *d)
{
	sup_timer_set(d->sup, &d->timer, CLOCK_MONOTONIC,
	    d->sup->config->telemetry.interval_ms * 1000, on_time, d);
}

void
statsd_new(struct sup *sup)
{
	struct statsd *d;

	if (!sup->config->telemetry.statsd_address[0])
		return;
	d = sup->statsd = mem_new(struct statsd);
	d->sup = sup;
	d->next_turn.run = on_next_turn;
	read_address(d, sup->config->telemetry.statsd_address);
	d->fd = socket(d->to.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (d->fd < 0)
		log_warn("metrics cannot be sent: %s", strerror(errno));
	else
		send_soon(d);
}

void
statsd_free(struct sup *sup)
{
	struct statsd *d = sup->statsd;

	if (!d)
		return;
	sup_timer_cancel(&d->timer);
	turn_forget_deferred(sup, &d->next_turn);
	scrape_free(d->scrape);
	close_p(&d->fd);
	free_p(&sup->statsd);
}
