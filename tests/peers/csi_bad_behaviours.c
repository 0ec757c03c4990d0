// SPDX-License-Identifier: Apache-2.0
/* csi_bad_behaviours.c: what the rules of csi_bad make of a correct answer. Runs in: tests. */
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "tests/peers/csi_bad.h"

#define ANSWER_MAX (16 * 1024 * 1024)

static void
set_bytes(struct answer *a, const void *data, size_t len)
{
	a->data = realloc(a->data, len + 1);
	memcpy(a->data, data, len);
	a->len = len;
}

static void
do_ok(struct answer *a, unsigned long value, unsigned nth)
{
}

static void
do_none(struct answer *a, unsigned long value, unsigned nth)
{
	a->len = 0;
}

static void
do_nothing(struct answer *a, unsigned long value, unsigned nth)
{
	free_p(&a->data);
}

static void
do_hang(struct answer *a, unsigned long value, unsigned nth)
{
	a->never = true;
}

/* Makes the file that says that the process ended in this call. Returns false if it was there. */
static bool
note_death(const struct answer *a)
{
	char path[1200];
	int fd;

	if (!bad.state_dir)
		return true;
	(void)snprintf(path, sizeof path, "%s/died:%s:%s", bad.state_dir, a->name, a->volume);
	fd = open(path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
	if (fd < 0)
		return false;
	(void)close(fd);
	return true;
}

static void
do_die(struct answer *a, unsigned long value, unsigned nth)
{
	if (note_death(a))
		_exit(0);
}

static void
do_slow(struct answer *a, unsigned long value, unsigned nth)
{
	a->delay_ms = (unsigned)value;
}

static void
do_status(struct answer *a, unsigned long value, unsigned nth)
{
	a->status = (int)value;
	a->message = "as commanded";
}

static void
do_once(struct answer *a, unsigned long value, unsigned nth)
{
	if (nth == 1)
		do_status(a, value, nth);
}

static void
do_again(struct answer *a, unsigned long value, unsigned nth)
{
	if (nth <= 2)
		do_status(a, value, nth);
}

static void
do_late(struct answer *a, unsigned long value, unsigned nth)
{
	a->late = true;
	a->delay_ms = (unsigned)value;
}

static void
do_lost(struct answer *a, unsigned long value, unsigned nth)
{
	a->lost = (int)value;
}

static void
do_killed(struct answer *a, unsigned long value, unsigned nth)
{
	a->killed = note_death(a);
}

static void
do_held(struct answer *a, unsigned long value, unsigned nth)
{
	a->held = true;
}

static void
do_lies(struct answer *a, unsigned long value, unsigned nth)
{
	a->effect = NULL;
	a->trace = NULL;
}

static void
do_noise(struct answer *a, unsigned long value, unsigned nth)
{
	static char noise[3001];

	for (size_t i = 0; i < sizeof noise - 1; i++)
		noise[i] = "\033[1m\xff\r\n\xc3"[i % 8];
	a->status = (int)value;
	a->message = noise;
}

static void
do_long(struct answer *a, unsigned long value, unsigned nth)
{
	static char text[ANSWER_MAX];

	memset(text, 'x', value < sizeof text ? value : sizeof text - 1);
	a->status = STATUS_INTERNAL;
	a->message = text;
}

/* Bytes between the fields become '.'. */
static void
do_echo(struct answer *a, unsigned long value, unsigned nth)
{
	static char text[16384];
	size_t len = a->request_len < sizeof text - 1 ? a->request_len : sizeof text - 1;

	for (size_t i = 0; i < len; i++)
		text[i] = a->request[i] < ' ' ? '.' : (char)a->request[i];
	text[len] = '\0';
	a->status = (int)value;
	a->message = text;
}

/* Only the server's own connections are connected sockets. */
static void
do_drop(struct answer *a, unsigned long value, unsigned nth)
{
	struct sockaddr_un peer;
	socklen_t len = sizeof peer;

	for (int fd = 3; fd < 1024; fd++, len = sizeof peer)
		if (getpeername(fd, (struct sockaddr *)&peer, &len) == 0)
			(void)shutdown(fd, SHUT_RDWR);
	a->never = true;
}

static void
do_garbage(struct answer *a, unsigned long value, unsigned nth)
{
	uint8_t bytes[256];

	(void)!getrandom(bytes, sizeof bytes, 0);
	bytes[0] = 0x07; /* an invalid wire type */
	set_bytes(a, bytes, sizeof bytes);
}

static size_t
put_varint(uint8_t *at, uint64_t n)
{
	size_t i = 0;

	for (; n > 0x7f; n >>= 7)
		at[i++] = (uint8_t)(n | 0x80);
	at[i++] = (uint8_t)n;
	return i;
}

static void
do_huge(struct answer *a, unsigned long value, unsigned nth)
{
	size_t n = value < ANSWER_MAX ? value : ANSWER_MAX;

	a->data = realloc(a->data, n + 16);
	a->data[0] = FIELD_1_LENGTH;
	a->len = 1 + put_varint(a->data + 1, n);
	memset(a->data + a->len, 'x', n);
	a->len += n;
}

static void
do_many(struct answer *a, unsigned long value, unsigned nth)
{
	size_t n = value < ANSWER_MAX ? value : ANSWER_MAX;

	a->len = 2 * n;
	a->data = realloc(a->data, a->len + 1);
	for (size_t i = 0; i < n; i++) {
		a->data[2 * i] = FIELD_1_LENGTH;
		a->data[2 * i + 1] = 0;
	}
}

static void
do_nul(struct answer *a, unsigned long value, unsigned nth)
{
	set_bytes(a,
	    "\x0a\x03"
	    "a\0b",
	    5);
}

static void
do_latin1(struct answer *a, unsigned long value, unsigned nth)
{
	set_bytes(a,
	    "\x0a\x02"
	    "a\xe4",
	    4);
}

static void
do_twice(struct answer *a, unsigned long value, unsigned nth)
{
	size_t field = a->len > 1 && a->data[0] == FIELD_1_LENGTH ? 2 + (size_t)a->data[1] : 0;

	a->data = realloc(a->data, a->len + field + 1);
	memcpy(a->data + a->len, a->data, field);
	a->len += field;
}

static void
do_unknown(struct answer *a, unsigned long value, unsigned nth)
{
	/* field 1000: "?" */
	static const uint8_t field[] = { 0xc2, 0x3e, 1, '?' };

	a->data = realloc(a->data, a->len + sizeof field + 1);
	memcpy(a->data + a->len, field, sizeof field);
	a->len += sizeof field;
}

static const struct behaviour behaviours[] = {
	{ "ok", do_ok },
	{ "none", do_none },
	{ "nothing", do_nothing },
	{ "hang", do_hang },
	{ "die", do_die },
	{ "slow", do_slow },
	{ "status", do_status },
	{ "once", do_once },
	{ "again", do_again },
	{ "late", do_late },
	{ "lost", do_lost },
	{ "killed", do_killed },
	{ "held", do_held },
	{ "lies", do_lies },
	{ "noise", do_noise },
	{ "long", do_long },
	{ "echo", do_echo },
	{ "drop", do_drop },
	{ "garbage", do_garbage },
	{ "huge", do_huge },
	{ "many", do_many },
	{ "nul", do_nul },
	{ "latin1", do_latin1 },
	{ "twice", do_twice },
	{ "unknown", do_unknown },
};

/* Reads "at:K:" or "first:K:" at *name, and moves it behind that. */
static bool
read_span(const char **name, struct span *ret)
{
	static const char at[] = "at:", first[] = "first:";
	bool is_at = strncmp(*name, at, strlen(at)) == 0;
	char *end;

	*ret = (struct span){ 1, ULONG_MAX };
	if (!is_at && strncmp(*name, first, strlen(first)) != 0)
		return true;
	ret->last = strtoul(*name + strlen(is_at ? at : first), &end, 10);
	if (is_at)
		ret->first = ret->last;
	*name = end + 1;
	return ret->last > 0 && *end == ':';
}

const struct behaviour *
bad_find_behaviour(const char *rule, unsigned long *ret_value, struct span *ret_span)
{
	const char *name = strchr(rule, '=') + 1, *colon;
	size_t len;

	if (!read_span(&name, ret_span))
		return NULL;
	colon = strchr(name, ':');
	len = colon ? (size_t)(colon - name) : strlen(name);

	*ret_value = colon ? strtoul(colon + 1, NULL, 10) : 0;
	for (size_t i = 0; i < ELEMENTSOF(behaviours); i++)
		if (strlen(behaviours[i].name) == len &&
		    strncmp(behaviours[i].name, name, len) == 0)
			return &behaviours[i];
	return NULL;
}
