// SPDX-License-Identifier: Apache-2.0
/*
 * csi_bad.c: a CSI plugin that misbehaves on command: its server, rules and log. Runs in: tests.
 *
 * csi_bad SOCKET [connection=MODE] [log=FILE] [requests=FILE] [rules=FILE] [mounts=yes]
 *     [attach=FILE] [state=DIR] [strict=yes] [clock=yes] [context=volume]
 *     [group=yes] [expects=yes] [sizes=DIR] [stages=no] [Method=BEHAVIOUR]...
 *
 * log: a line "Method volume" for each call, with " fs=TYPE flags=A,B" if it has a capability, and
 * " rule=RULE" if one applies.
 * requests: a line for each call: the method and its whole request in hexadecimal.
 * rules: the rules are read again from this file, before each call. mounts: NodeStageVolume mounts
 * a tmpfs, whose source is the volume's id, NodePublishVolume binds it, and so on; without staging,
 * NodePublishVolume mounts one. Meanwhile other calls for the volume get ABORTED.
 * attach: the controller also attaches volumes, also read-only, and appends these calls to FILE,
 * one a line. state: the effect of a call is a file in DIR, "volume:ID", "attached:ID",
 * "staged:ID", "published:ID", "snapshot:ID" or "group:ID"; the plugin also attaches volumes,
 * expands them on the node, modifies them, and tells their state and its capacity; a death leaves a
 * file "died:METHOD:ID". strict: what is there already is refused with ALREADY_EXISTS, and what is
 * not there with NOT_FOUND. clock: each line of the log ends with " ms=TIME" (CLOCK_MONOTONIC).
 * context: the publish context is the volume context. group: the plugin has a GroupController.
 * expects: requests must have the secrets, mount options and context of csi_bad_expect.c, or the
 * log has a line "bad Method volume: why". sizes: the plugin also expands volumes on the node;
 * "DIR/ID" has the size of the volume and "DIR/ID.node" what the node took over; the node is asked
 * for more before the controller: a line "bad …". stages: without staging.
 *
 * connection: grpc (default); dead (closes at once); silent (never reads nor writes); full (a
 * backlog that stays full); garbage (random bytes, then open); http1 (an answer of HTTP/1.1);
 * goaway (SETTINGS, GOAWAY, open).
 *
 * Behaviour of a method ("NodeStageVolume", "NodeStageVolume/volume" or "*" for all); the first
 * match applies:
 *
 *   ok            a correct answer, but nothing is done (the default)
 *   none          an empty message: no name, capability, node id or volume
 *   nothing       status OK without a message
 *   hang          no answer ever
 *   die           the process ends; with state=DIR once for each method and
 *                 volume, of which the file "died:METHOD:ID" is left
 *   slow:MS       ok, after this time
 *   status:N      gRPC status N
 *   once:N        status N for the first call, ok for the others
 *   again:N       status N for the first two calls, ok for the others
 *   late:MS       UNAVAILABLE at once, and the effect after this time
 *   lost:N        the effect, but status N
 *   killed        the effect, and then the process ends without an answer; with
 *                 state=DIR once, as above
 *   held          ok, once there is a file "release" in DIR
 *   lies          ok, without the effect
 *   noise:N       status N with 3,000 bytes of control characters and invalid UTF-8
 *   long:BYTES    status INTERNAL with a text of so many bytes
 *   echo:N        status N with the bytes of the request as its text
 *   at:K:…        a behaviour for the Kth call only; another rule may follow for the others
 *   first:K:…     a behaviour for the first K calls
 *   drop          the connection is closed during the call
 *   garbage       random bytes instead of a message
 *   huge:BYTES    a message whose first field is a string of so many bytes
 *   many:N        a message with N empty elements in its first field
 *   nul, latin1   a message whose first field is not valid text
 *   twice         ok, with the first field once more
 *   unknown       ok, with an unknown field
 *
 * With CSI_BAD_DEVICE=/dev/loop0 in its environment it publishes that device, by a mount on a file;
 * if it is a directory, the device in it that has the name of the volume.
 * With CSI_BAD_MOUNTER="bindfs /dir" and mounts=yes, NodeStageVolume runs that command with the
 * staging path, instead of mounting a tmpfs.
 */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "contrib/csi-local/csl_grpc.h"
#include "tests/peers/csi_bad.h"

#define RULES_MAX 512

struct bad_options bad;

static char *rules[RULES_MAX];
static int n_rules;
static unsigned n_calls[RULES_MAX]; /* by rule */
static const char *log_path, *requests_path, *rules_path;
static char rules_text[65536], *rules_copy;
static pthread_mutex_t busy_lock = PTHREAD_MUTEX_INITIALIZER;
static char busy[256][256]; /* volumes with a call in progress */

/* --- effects as files --- */

/* The file "kind:volume" that a call makes or removes, with state=DIR. */
struct trace {
	const char *method, *kind;
	bool removes;
};

static const struct trace *
find_trace(const char *method)
{
	static const struct trace traces[] = {
		{ "CreateVolume", "volume", false },
		{ "DeleteVolume", "volume", true },
		{ "CreateSnapshot", "snapshot", false },
		{ "DeleteSnapshot", "snapshot", true },
		{ "CreateVolumeGroupSnapshot", "group", false },
		{ "DeleteVolumeGroupSnapshot", "group", true },
		{ "ControllerPublishVolume", "attached", false },
		{ "ControllerUnpublishVolume", "attached", true },
		{ "NodeStageVolume", "staged", false },
		{ "NodeUnstageVolume", "staged", true },
		{ "NodePublishVolume", "published", false },
		{ "NodeUnpublishVolume", "published", true },
	};

	for (size_t i = 0; bad.state_dir && i < ELEMENTSOF(traces); i++)
		if (strcmp(traces[i].method, method) == 0)
			return &traces[i];
	return NULL;
}

/* Makes or removes the file of a call's effect, or only looks. Returns whether it was there. */
static bool
state_file(const struct answer *a, bool change)
{
	const struct trace *t = a->trace;
	char path[1200];
	bool was;
	int fd;

	(void)snprintf(path, sizeof path, "%s/%s:%s", bad.state_dir, t->kind, a->volume);
	was = access(path, F_OK) == 0;
	if (!change)
		return was;
	if (!t->removes) {
		fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
		close_p(&fd);
	} else {
		(void)unlink(path);
	}
	return was;
}

static void
note_effect(const struct answer *a)
{
	(void)state_file(a, true);
}

/* With strict=yes: refuses what was done before. */
static void
refuse_again(struct answer *a)
{
	bool makes = !a->trace->removes;

	if (state_file(a, false) != makes)
		return;
	a->status = makes ? STATUS_ALREADY_EXISTS : STATUS_NOT_FOUND;
	a->message = "not idempotent";
	a->effect = NULL;
	a->trace = NULL;
}

/* --- the server --- */

/* Returns the slot of a volume that has a call in progress, or with "" a free one. */
static char *
find_busy(const char *volume)
{
	for (size_t i = 0; i < ELEMENTSOF(busy); i++)
		if (strcmp(busy[i], volume) == 0)
			return busy[i];
	return NULL;
}

/* Makes the volume busy. Returns false if it is already. */
static bool
begin_effect(const struct answer *a)
{
	bool free;
	char *slot;

	(void)pthread_mutex_lock(&busy_lock);
	free = !find_busy(a->volume);
	if (free && (slot = find_busy("")))
		(void)strcpy(slot, a->volume);
	(void)pthread_mutex_unlock(&busy_lock);
	return free;
}

static void
end_effect(const struct answer *a)
{
	char *slot;

	if (a->effect)
		a->effect(a);
	if (a->trace)
		note_effect(a);
	(void)pthread_mutex_lock(&busy_lock);
	slot = find_busy(a->volume);
	if (slot)
		slot[0] = '\0';
	(void)pthread_mutex_unlock(&busy_lock);
}

static void
send_answer(struct answer *a)
{
	if (a->effect || a->trace)
		end_effect(a);
	if (a->killed)
		_exit(0);
	if (a->lost) {
		a->status = a->lost;
		a->message = "as commanded";
	}
	if (!a->late)
		csl_call_answer(a->call, a->status, a->message, a->data, a->len);
	free(a->data);
	free(a);
}

static void *
send_later(void *arg)
{
	struct answer *a = arg;
	char release[1200];

	(void)snprintf(release, sizeof release, "%s/release", bad.state_dir);
	while (a->held && access(release, F_OK) < 0)
		(void)usleep(20000);
	(void)usleep(a->delay_ms * 1000);
	send_answer(a);
	return NULL;
}

static bool
rule_matches(const char *rule, const char *method, const char *volume)
{
	size_t len = strcspn(rule, "=/");

	if (rule[len] == '/' && strncmp(rule + len + 1, volume, strlen(volume)) != 0)
		return false;
	if (rule[len] == '/' && rule[len + 1 + strlen(volume)] != '=')
		return false;
	return (len == 1 && rule[0] == '*') ||
	       (strlen(method) == len && strncmp(rule, method, len) == 0);
}

/* Reads the rules again if their file has changed. */
static void
read_rules(void)
{
	static char text[sizeof rules_text];
	FILE *f = rules_path ? fopen(rules_path, "re") : NULL;
	size_t n;

	if (!f)
		return;
	n = fread(text, 1, sizeof text - 1, f);
	text[n] = '\0';
	(void)fclose(f);
	if (strcmp(text, rules_text) == 0)
		return;
	(void)strcpy(rules_text, text);
	free(rules_copy);
	rules_copy = strdup(text);
	n_rules = 0;
	memset(n_calls, 0, sizeof n_calls);
	for (char *save = NULL, *word = strtok_r(rules_copy, " \n", &save);
	     word && n_rules < RULES_MAX; word = strtok_r(NULL, " \n", &save))
		rules[n_rules++] = word;
}

/* The volume's id is the first field of all requests about one. Lists have a token behind the size
 * of the page instead. */
static void
read_volume(struct answer *a, const uint8_t *data, size_t len)
{
	uint8_t tag = FIELD_1_LENGTH;

	if (len > 2 && data[0] == FIELD_1_NUMBER && data[1] < 128) {
		data += 2;
		len -= 2;
		tag = FIELD_2_LENGTH;
	}
	if (len > 2 && data[0] == tag && data[1] < 128 && (size_t)data[1] + 2 <= len)
		(void)snprintf(
		    a->volume, sizeof a->volume, "%.*s", data[1], (const char *)data + 2);
}

static void
log_call(const char *name, const struct answer *a, const char *rule)
{
	FILE *f = log_path ? fopen(log_path, "ae") : NULL;
	struct timespec now;

	if (!f)
		return;
	fprintf(
	    f, "%s %s%s%s%s", name, a->volume, a->options, rule ? " rule=" : "", rule ? rule : "");
	(void)clock_gettime(CLOCK_MONOTONIC, &now);
	if (bad.clocked)
		fprintf(f, " ms=%lld", (long long)now.tv_sec * 1000 + now.tv_nsec / 1000000);
	(void)fputc('\n', f);
	(void)fclose(f);
}

void
bad_log(const struct answer *a, const char *why)
{
	FILE *f = log_path ? fopen(log_path, "ae") : NULL;

	if (!f)
		return;
	(void)fprintf(f, "bad %s %s: %s\n", a->name, a->volume, why);
	(void)fclose(f);
}

static void
log_request(const char *name, const uint8_t *data, size_t len)
{
	FILE *f = requests_path ? fopen(requests_path, "ae") : NULL;

	if (!f)
		return;
	(void)fprintf(f, "%s ", name);
	for (size_t i = 0; i < len; i++)
		(void)fprintf(f, "%02x", data[i]);
	(void)fputc('\n', f);
	(void)fclose(f);
}

/* Returns the behaviour of the rule for this call, and the rule in *ret_rule; NULL and NULL if none
 * matches. Counts the call. */
static const struct behaviour *
choose_behaviour(const char *method, const char *volume, const char **ret_rule,
    unsigned long *ret_value, unsigned *ret_nth)
{
	const struct behaviour *b;
	struct span span;

	*ret_rule = NULL;
	for (int i = 0; i < n_rules; i++) {
		if (!strchr(rules[i], '=') || !rule_matches(rules[i], method, volume))
			continue;
		b = bad_find_behaviour(rules[i], ret_value, &span);
		*ret_nth = ++n_calls[i];
		if (*ret_nth < span.first || *ret_nth > span.last)
			continue;
		*ret_rule = rules[i];
		return b;
	}
	return NULL;
}

static void
on_call(void *arg, struct csl_call *call, const char *path, const uint8_t *data, size_t len)
{
	const char *name = strrchr(path, '/') + 1;
	struct answer *a = calloc(1, sizeof *a);
	const struct behaviour *b;
	const char *rule, *wrong;
	unsigned long value;
	unsigned nth;
	pthread_t thread;

	log_request(name, data, len);
	a->call = call;
	a->request = data;
	a->request_len = len;
	a->name = name;
	a->status = STATUS_UNIMPLEMENTED;
	read_volume(a, data, len);
	read_rules();
	if (bad_answer(a, data, len))
		a->trace = find_trace(name);
	b = choose_behaviour(name, a->volume, &rule, &value, &nth);
	log_call(name, a, rule);
	wrong = bad.expects ? bad_check_request(name, a->volume, data, len) : NULL;
	if (wrong)
		bad_log(a, wrong);
	if (b)
		b->apply(a, value, nth);
	if (a->never)
		return;
	if (!bad.mounts || a->status != 0)
		a->effect = NULL;
	if (a->status != 0)
		a->trace = NULL;
	if (bad.strict && a->trace)
		refuse_again(a);
	if ((a->effect || a->trace) && !begin_effect(a)) {
		a->effect = NULL;
		a->trace = NULL;
		a->delay_ms = 0;
		a->late = false;
		a->status = STATUS_ABORTED;
		a->message = "another call for the volume is in progress";
	}
	if (a->late)
		csl_call_answer(call, STATUS_UNAVAILABLE, "as commanded", NULL, 0);
	if ((a->delay_ms == 0 && !a->held) || pthread_create(&thread, NULL, send_later, a) != 0)
		send_answer(a);
	else
		(void)pthread_detach(thread);
}

static int
listen_on(const char *path, int backlog)
{
	struct sockaddr_un at = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	(void)unlink(path);
	(void)snprintf(at.sun_path, sizeof at.sun_path, "%s", path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&at, sizeof at) < 0 ||
	    listen(fd, backlog) < 0) {
		perror(path);
		exit(1);
	}
	return fd;
}

/* Serves the modes below HTTP/2, one connection after the other; open ones are never closed. */
_Noreturn static void
serve_raw(const char *path, const char *mode)
{
	static const char http1[] = "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n";
	static const uint8_t goaway[] = { 0, 0, 0, 4, 0, 0, 0, 0, 0, 0, 0, 8, 7, 0, 0, 0, 0, 0, 0,
		0, 0, 0, 0, 0, 0, 1 };
	int fd = listen_on(path, strcmp(mode, "full") == 0 ? 0 : 16);
	uint8_t bytes[4096];

	while (strcmp(mode, "full") == 0)
		(void)pause();
	for (;;) {
		int conn = accept(fd, NULL, NULL);

		if (strcmp(mode, "dead") == 0) {
			(void)close(conn);
		} else if (strcmp(mode, "garbage") == 0) {
			(void)!getrandom(bytes, sizeof bytes, 0);
			(void)!write(conn, bytes, sizeof bytes);
		} else if (strcmp(mode, "http1") == 0) {
			(void)!write(conn, http1, sizeof http1 - 1);
		} else if (strcmp(mode, "goaway") == 0) {
			(void)!write(conn, goaway, sizeof goaway);
		}
	}
}

/* Takes a word of the command line that is no rule. Returns false if it is none. */
static bool
take_option(const char *word)
{
	static const struct {
		const char *name, **to;
	} texts[] = {
		{ "log=", &log_path },
		{ "requests=", &requests_path },
		{ "rules=", &rules_path },
		{ "attach=", &bad.attach_log },
		{ "state=", &bad.state_dir },
		{ "sizes=", &bad.sizes_dir },
	};
	static const struct {
		const char *word;
		bool *to;
	} flags[] = {
		{ "mounts=yes", &bad.mounts },
		{ "strict=yes", &bad.strict },
		{ "clock=yes", &bad.clocked },
		{ "group=yes", &bad.grouped },
		{ "expects=yes", &bad.expects },
		{ "stages=no", &bad.unstaged },
		{ "context=volume", &bad.echoes_context },
	};

	for (size_t i = 0; i < ELEMENTSOF(texts); i++)
		if (strncmp(word, texts[i].name, strlen(texts[i].name)) == 0) {
			*texts[i].to = word + strlen(texts[i].name);
			return true;
		}
	for (size_t i = 0; i < ELEMENTSOF(flags); i++)
		if (strcmp(word, flags[i].word) == 0) {
			*flags[i].to = true;
			return true;
		}
	return false;
}

int
main(int argc, char **argv)
{
	static const char *const modes[] = { "dead", "silent", "full", "garbage", "http1",
		"goaway" };
	struct csl_server *server;
	struct err e = { 0 };
	unsigned long value;
	struct span span;

	(void)signal(SIGPIPE, SIG_IGN);
	bad.device = getenv("CSI_BAD_DEVICE");
	bad.mounter = getenv("CSI_BAD_MOUNTER");
	bad.mounts = bad.device != NULL;
	if (argc < 2)
		return 2;
	for (int i = 2; i < argc; i++) {
		for (size_t m = 0; m < ELEMENTSOF(modes); m++)
			if (strncmp(argv[i], "connection=", 11) == 0 &&
			    strcmp(argv[i] + 11, modes[m]) == 0)
				serve_raw(argv[1], modes[m]);
		if (take_option(argv[i]))
			continue;
		if (n_rules == RULES_MAX || !strchr(argv[i], '=') ||
		    !bad_find_behaviour(argv[i], &value, &span)) {
			fprintf(stderr, "csi_bad: '%s' is no rule\n", argv[i]);
			return 2;
		}
		rules[n_rules++] = argv[i];
	}
	if (csl_server_new(argv[1], on_call, NULL, &server, &e) < 0) {
		fprintf(stderr, "csi_bad: %s\n", e.msg);
		return 1;
	}
	csl_server_run(server);
}
