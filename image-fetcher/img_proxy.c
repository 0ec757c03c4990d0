// SPDX-License-Identifier: Apache-2.0
/*
 * img_proxy.c: speaks with `skopeo experimental-image-proxy` (skopeo 1.6 and later; protocol 0.2).
 * Runs in: a worker of the image-fetcher.
 *
 * skopeo knows registries: mirrors, tokens, certificates, credential helpers, signatures, formats
 * of manifests. Its proxy gives out manifests and blobs one by one, so this process decides what is
 * fetched, counts and checks it. A request is {"method": …, "args": […]} in one packet; the answer
 * {"success", "value", "pipeid", "error"}, with the reading end of a pipe if pipeid is not 0.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/privs.h"
#include "image-fetcher/img.h"
#include "proto/skopeo.h"

#define MESSAGE_MAX 32768 /* bytes of a request or answer of the protocol */
#define FD_SOCKET   3
#define FD_MORE     4 /* the file of credentials, or the directory of an archive (IMG_DIR) */
#define AUTH_PATH   "/proc/self/fd/4"

/* Cuts the queries off the urls in a text: those of registries may have signatures. */
static void
hide_queries(char *text)
{
	char *to = text;

	for (const char *from = text; *from;) {
		*to++ = *from;
		if (*from++ == '?')
			from += strcspn(from, " \t\r\n\"'");
	}
	*to = '\0';
}

/* A list of errors has a line for each. */
static void
join_lines(char *text)
{
	char *to = text;

	for (const char *from = text; *from; from++) {
		bool space = *from == ' ' || *from == '\t' || *from == '\n';

		if (!space || (to > text && to[-1] != ' '))
			*to++ = space ? ' ' : *from;
	}
	while (to > text && to[-1] == ' ')
		to--;
	*to = '\0';
}

/* skopeo may repeat the last part: "manifest unknown: manifest unknown". */
static void
drop_repetition(char *text)
{
	size_t n = strlen(text);

	for (char *at = text; (at = strstr(at, ": ")); at += 2) {
		size_t rest = n - (size_t)(at + 2 - text);

		if ((size_t)(at - text) >= rest && strncmp(at - rest, at + 2, rest) == 0)
			*at = '\0';
		if (!*at)
			break;
	}
}

/* Words by which skopeo, and Go's library below it, report what may be different a moment later. */
static bool
may_pass(const char *text)
{
	static const char *const words[] = { "EOF", "connection refused", "connection reset",
		"timeout", "no such host", "server misbehaving", "network is unreachable",
		"no route to host", "broken pipe", "toomanyrequests", "Too Many Requests",
		"registry 5", "StatusCode: 5", "received unexpected HTTP status: 5" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strstr(text, words[i]))
			return true;
	return false;
}

/* Registries answer a wrong password as they answer none. */
static const char *
explain_refusal(const struct img_proxy *p, const char *text)
{
	static const char *const words[] = { "authentication required", "unauthorized",
		"invalid username/password", "access to the resource is denied" };

	for (size_t i = 0; i < ELEMENTSOF(words); i++)
		if (strstr(text, words[i]))
			return p->has_auth
				   ? ": the user name and password that are configured for "
				     "this registry may be wrong, or may not permit this image"
				   : ": there is no user name and password for this registry "
				     "in auth of the task or of plugin \"docker\"";
	return "";
}

static int
fail(const struct img_proxy *p, const char *text, struct err *e)
{
	cleanup_free char *copy = mem_strdup(text);

	join_lines(copy);
	hide_queries(copy);
	drop_repetition(copy);
	return err_say(
	    e, may_pass(text) ? -EAGAIN : -EREMOTEIO, "%.300s%s", copy, explain_refusal(p, copy));
}

static void __attribute__((noreturn))
become_skopeo(const struct img_spec *spec, pid_t parent, int sock, int auth_fd)
{
	static const char *const inherited[] = { "HTTP_PROXY", "http_proxy", "HTTPS_PROXY",
		"https_proxy", "NO_PROXY", "no_proxy" };
	char *args[24], *env[16];
	const int more_fd = auth_fd >= 0 ? auth_fd : spec->dir_fd;
	int fds[] = { sock, more_fd }, n = 0, n_env = 0;
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);

	privs_die_with_parent(parent);
	args[n++] = mem_strdup("skopeo");
	args[n++] = mem_printf("--override-os=%s", spec->os);
	args[n++] = mem_printf("--override-arch=%s", spec->architecture);
	if (*spec->variant)
		args[n++] = mem_printf("--override-variant=%s", spec->variant);
	args[n++] = mem_strdup("experimental-image-proxy");
	args[n++] = mem_strdup("--sockfd=3");
	args[n++] = auth_fd >= 0 ? mem_strdup("--authfile=" AUTH_PATH) : mem_strdup("--no-creds");
	if (spec->insecure)
		args[n++] = mem_strdup("--tls-verify=false");
	args[n] = NULL;
	env[n_env++] = mem_strdup("PATH=/usr/local/bin:/usr/bin:/bin");
	env[n_env++] = mem_strdup("HOME=/nonexistent");
	for (size_t i = 0; i < ELEMENTSOF(inherited); i++)
		if (getenv(inherited[i]))
			env[n_env++] = mem_printf("%s=%s", inherited[i], getenv(inherited[i]));
	env[n_env] = NULL;
	/* Its output is not needed: its answers have all errors. */
	if (null < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
	    fd_pack(fds, more_fd >= 0 ? 2 : 1, FD_SOCKET) < 0)
		_exit(126);
	(void)execve(SKOPEO, args, env);
	_exit(127);
}

int
img_proxy_start(struct img_proxy *p, const struct img_spec *spec, int auth_fd, struct err *e)
{
	const int size = 4 * MESSAGE_MAX;
	pid_t parent = getpid(), pid;
	int pair[2], r;

	if (access(SKOPEO, X_OK) < 0)
		return err_say(e, -ENOENT, SKOPEO_MISSING);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_set(e, -errno, "make a socket pair for skopeo");
	(void)setsockopt(pair[0], SOL_SOCKET, SO_RCVBUF, &size, sizeof size);
	pid = fork();
	if (pid == 0)
		become_skopeo(spec, parent, pair[1], auth_fd);
	(void)close(pair[1]);
	*p = (struct img_proxy){
		.sock = pair[0], .idle_ms = spec->idle_ms, .has_auth = auth_fd >= 0
	};
	if (pid < 0)
		r = err_set(e, -errno, "start skopeo");
	else
		r = img_proxy_call(p, "Initialize", json_array(), NULL, NULL, NULL, e);
	if (r < 0)
		img_proxy_done(p);
	return r;
}

void
img_proxy_done(struct img_proxy *p)
{
	close_p(&p->sock);
}

static int
receive(struct img_proxy *p, char *buf, int *ret_fd, struct err *e)
{
	struct pollfd at = { .fd = p->sock, .events = POLLIN };
	size_t n_fds = 0;
	ssize_t n;
	int r = poll(&at, 1, (int)p->idle_ms);

	*ret_fd = -1;
	if (r == 0)
		return err_say(
		    e, -ETIMEDOUT, "the registry has sent nothing for %u s", p->idle_ms / 1000);
	n = fd_recv_msg(p->sock, buf, MESSAGE_MAX, ret_fd, 1, &n_fds, 0);
	if (n_fds == 0)
		*ret_fd = -1;
	if (n <= 0)
		return err_say(e, -EIO, "skopeo ended early: try `skopeo inspect` for the reason");
	buf[n] = '\0';
	return 0;
}

static int
read_answer(const struct img_proxy *p, const char *text, json_t **ret_value, json_int_t *ret_pipe,
    struct err *e)
{
	cleanup_with(json_decref) json_t *answer = json_loads(text, JSON_REJECT_DUPLICATES, NULL);
	const char *error = json_string_value(json_object_get(answer, "error"));

	if (!json_is_object(answer))
		return err_say(e, -EBADMSG, "skopeo answers something that is not JSON");
	if (!json_is_true(json_object_get(answer, "success")))
		return fail(p, error ? error : "skopeo gives no reason", e);
	if (ret_pipe)
		*ret_pipe = json_integer_value(json_object_get(answer, "pipeid"));
	if (ret_value)
		*ret_value = json_incref(json_object_get(answer, "value"));
	return 0;
}

static int
send_request(struct img_proxy *p, const char *method, json_t *args, struct err *e)
{
	cleanup_with(json_decref) json_t *request =
	    mem_need(json_pack("{s:s, s:o}", "method", method, "args", args));
	cleanup_free char *text = mem_need(json_dumps(request, JSON_COMPACT));

	return fd_send_msg(p->sock, text, strlen(text), NULL, 0, MSG_NOSIGNAL) < 0
		   ? err_say(e, -EIO, "skopeo ended early: try `skopeo inspect` for the reason")
		   : 0;
}

int
img_proxy_call(struct img_proxy *p, const char *method, json_t *args, json_t **ret_value,
    json_int_t *ret_pipe, int *ret_fd, struct err *e)
{
	cleanup_free char *answer = mem_alloc(MESSAGE_MAX + 1);
	cleanup_close int fd = -1;
	int r = send_request(p, method, args, e);

	if (r == 0)
		r = receive(p, answer, &fd, e);
	if (r == 0)
		r = read_answer(p, answer, ret_value, ret_pipe, e);
	if (r == 0 && ret_fd)
		*ret_fd = steal_fd(&fd);
	return r;
}

int
img_proxy_finish(struct img_proxy *p, json_int_t pipe, struct err *e)
{
	return send_request(p, "FinishPipe", mem_need(json_pack("[I]", pipe)), e);
}

int
img_proxy_finished(struct img_proxy *p, struct err *e)
{
	cleanup_free char *answer = mem_alloc(MESSAGE_MAX + 1);
	cleanup_close int fd = -1;
	int r = receive(p, answer, &fd, e);

	return r == 0 ? read_answer(p, answer, NULL, NULL, e) : r;
}
