// SPDX-License-Identifier: Apache-2.0
/* fuzz_lis_tls.c: a client of the listener at an address with TLS. The first byte chooses the
 * address (that of the API asks for a certificate) and what the other bytes are: what the client
 * sends instead of a handshake; what it sends after one; or changes of what it sends in its
 * handshake and later, each of two bytes for the distance from the last one and one that is added
 * to the byte there. */
#include "common/fd.h"
#include "common/tls.h"
#include "listener/lis.h"
#include "tests/fuzz/fuzz_lis.h"

#define REQUEST "GET /v1/agent/health HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define ANSWER  "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\nContent-Length: 2\r\n\r\nok"
#define ROUNDS  64

enum { RAW, BEHIND, CHANGED, KINDS };

/* Of nobody, but this test. */
static const char cert[] = "-----BEGIN CERTIFICATE-----\n"
			   "MIIBdTCCARugAwIBAgIUAKwl5ygXFMFOsUvAQ/BU20VzG98wCgYIKoZIzj0EAwIw\n"
			   "DzENMAsGA1UEAwwEZnV6ejAgFw0yNjExMjgyMjI5MjNaGA8yMTI2MTEwNDIyMjky\n"
			   "M1owDzENMAsGA1UEAwwEZnV6ejBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABOLC\n"
			   "DZq012iXbYWvsqnUw1cbR5NmGaNOeO0NQF+KNz+LVHeNNJSyTfzEzcHNrN/W5vGs\n"
			   "xSH9+mL1QesErkQ36TyjUzBRMB0GA1UdDgQWBBQW22c1ICn5+RRdQe+BSWUYWh4d\n"
			   "fTAfBgNVHSMEGDAWgBQW22c1ICn5+RRdQe+BSWUYWh4dfTAPBgNVHRMBAf8EBTAD\n"
			   "AQH/MAoGCCqGSM49BAMCA0gAMEUCIQDW8JxmzIO/yOoixiiekSWgHkRc2MDVmXlb\n"
			   "qcPRbUZtLAIgIwOQ3DfThxf3BObG0biEEIbw2fl4nuUnkIOrSED1eUc=\n"
			   "-----END CERTIFICATE-----\n";
static const char key[] = "-----BEGIN PRIVATE KEY-----\n"
			  "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgJgcG8JQwdxgSnIq3\n"
			  "1Ek5OujIW1zotxUZbBn8RQp/pvGhRANCAATiwg2atNdol22Fr7Kp1MNXG0eTZhmj\n"
			  "TnjtDUBfijc/i1R3jTSUsk38xM3Bzazf1ubxrMUh/fpi9UHrBK5EN+k8\n"
			  "-----END PRIVATE KEY-----\n";

static struct ssl_ctx_st *clients; /* context of the client */

static void
begin_tls(void)
{
	int cert_fd = fd_memfd_sealed("cert", cert, sizeof cert - 1);
	int key_fd = fd_memfd_sealed("key", key, sizeof key - 1);
	struct err e = { 0 };

	begin();
	HOLDS(tls_load(&e) == 0);
	for (size_t i = 0; i < LISTEN_USES; i++) {
		lis.doors[i].tls = tls_new_server(i == LISTEN_API ? cert_fd : -1, "ca", &e);
		HOLDS(lis.doors[i].tls);
		HOLDS(tls_identify(lis.doors[i].tls, cert_fd, key_fd, "tls", &e) == 0);
	}
	clients = tls_new(cert_fd, "ca", &e);
	HOLDS(clients && tls_identify(clients, cert_fd, key_fd, "tls", &e) == 0);
	(void)close(cert_fd);
	(void)close(key_fd);
}

static void
make_pair(int ends[2])
{
	HOLDS(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends) == 0);
}

/* --- bytes instead of a handshake --- */

static void
send_raw(int fd, const uint8_t *data, size_t size)
{
	for (size_t at = 0; at < size; at += 1024) {
		(void)send(fd, data + at, size - at < 1024 ? size - at : 1024, MSG_NOSIGNAL);
		run_events();
		read_all(fd);
	}
}

/* --- a client that speaks TLS --- */

/* What of its bytes is changed on the way. */
struct changes {
	const uint8_t *at;
	size_t left;
	size_t skip; /* bytes until the next change */
	bool has_one;
};

static void
next_change(struct changes *c)
{
	c->has_one = c->left >= 3;
	if (!c->has_one)
		return;
	c->skip = (size_t)c->at[0] << 8 | c->at[1];
}

/* Passes on what came from the client, and what goes to it. Returns whether there was anything. */
static bool
carry(int client, int server, struct changes *c)
{
	uint8_t buf[16384];
	ssize_t up = recv(client, buf, sizeof buf, MSG_DONTWAIT), down;

	for (ssize_t i = 0; i < up; i++) {
		if (c->has_one && c->skip == 0) {
			buf[i] = (uint8_t)(buf[i] + c->at[2]);
			c->at += 3;
			c->left -= 3;
			next_change(c);
		} else if (c->has_one) {
			c->skip--;
		}
	}
	if (up > 0)
		(void)send(server, buf, (size_t)up, MSG_NOSIGNAL);
	run_events();
	give_links(ANSWER, sizeof ANSWER - 1);
	down = recv(server, buf, sizeof buf, MSG_DONTWAIT);
	if (down > 0)
		(void)send(client, buf, (size_t)down, MSG_NOSIGNAL);
	return up > 0 || down > 0;
}

/* Shakes hands and then sends the text. */
static void
speak(int server, struct changes *c, const char *text, size_t len)
{
	struct err e = { 0 };
	bool intact = c->left < 3;
	int ends[2], r = 0;
	struct ssl_st *ssl;
	short events;
	char buf[4096];

	make_pair(ends);
	ssl = tls_begin(clients, ends[0], NULL);
	HOLDS(ssl);
	next_change(c);
	for (int i = 0; i < ROUNDS && r == 0; i++) {
		r = tls_shake(ssl, &events, &e);
		(void)carry(ends[1], server, c);
	}
	HOLDS(r == 1 || !intact);
	for (size_t at = 0; r == 1 && at < len;) {
		ssize_t n = tls_write(ssl, text + at, len - at < 1024 ? len - at : 1024, &e);

		if (n <= 0)
			break;
		at += (size_t)n;
		(void)carry(ends[1], server, c);
		while (tls_read(ssl, buf, sizeof buf, &e) > 0)
			;
	}
	for (int i = 0; i < ROUNDS && carry(ends[1], server, c); i++)
		;
	tls_end(ssl, r == 1);
	(void)carry(ends[1], server, c);
	(void)close(ends[0]);
	(void)close(ends[1]);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct in6_addr from = { 0 };
	struct changes none = { 0 }, changes;
	struct lis_door *d;
	int ends[2];

	if (size < 1)
		return 0;
	if (supervisor < 0)
		begin_tls();
	d = &lis.doors[data[0] % LISTEN_USES];
	make_pair(ends);
	lis_conn_new(&lis, d, ends[1], &from, "192.0.2.7:4711");
	changes = (struct changes){ .at = data + 1, .left = size - 1 };
	switch (data[0] / LISTEN_USES % KINDS) {
	case RAW:
		send_raw(ends[0], data + 1, size - 1);
		break;
	case BEHIND:
		speak(ends[0], &none, (const char *)data + 1, size - 1);
		break;
	case CHANGED:
		speak(ends[0], &changes, REQUEST, sizeof REQUEST - 1);
		break;
	}
	(void)close(ends[0]);
	end_all(d);
	return 0;
}
