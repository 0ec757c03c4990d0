// SPDX-License-Identifier: Apache-2.0
/* fet_http.c: transfers by http or https. The server is not trusted: what is for it, such as
 * headers, is not sent to another one to which it redirects. Runs in: a worker of the fetcher. */
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/fd.h"
#include "common/mem.h"
#include "fetcher/fet.h"
#include "fetcher/fet_redirect.h"

#define REDIRECTS_MAX 10 /* as many as Go's client follows */
#define CONNECT_MS    30000L
#define STALL_S       60L        /* a server that sends nothing for so long is given up */
#define HEAD_MAX      (1u << 20) /* bytes of all header lines */
#define TRIES         3
#define PAUSE_NS      400000000 /* before the second try, and twice as long before the third */

struct transfer {
	struct fet *f;
	const struct fet_http *http;
	CURL *curl;
	int file_fd;
	uint64_t limit, written, head;
	bool too_large, head_too_large;
	int error; /* of writing the file */
};

DEFINE_CLEANUP(struct curl_slist *, curl_slist_free_all);

static long
status_of(CURL *curl)
{
	long status = 0;

	(void)curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
	return status;
}

static size_t
on_head(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;

	t->head += size * n;
	t->head_too_large = t->head > HEAD_MAX;
	return t->head_too_large ? 0 : size * n;
}

/* The body of a redirect counts as a part of its head; those of other answers than 2xx end the
 * transfer. */
static size_t
on_body(char *data, size_t size, size_t n, void *arg)
{
	struct transfer *t = arg;
	size_t len = size * n;
	int r;

	if (status_of(t->curl) / 100 == 3)
		return on_head(data, size, n, arg);
	if (status_of(t->curl) / 100 != 2)
		return 0;
	if (len > t->limit - t->written) {
		t->too_large = true;
		return 0;
	}
	r = fd_write_full(t->file_fd, data, len);
	if (r < 0) {
		t->error = r;
		return 0;
	}
	t->written += len;
	return len;
}

static int
on_progress(void *arg, curl_off_t total, curl_off_t now, curl_off_t up, curl_off_t up_now)
{
	struct transfer *t = arg;

	t->f->told->total = total > 0 && t->f->files == 0 ? (uint64_t)total : 0;
	t->f->told->bytes = t->f->bytes + (now > 0 ? (uint64_t)now : 0);
	return t->f->told->give_up; /* ends the transfer */
}

static struct curl_slist *
add_header(struct curl_slist *list, const char *name, const char *value)
{
	/* For libcurl, "Name;" is a header with an empty value, and "Name:" removes one. */
	cleanup_free char *line =
	    *value ? mem_printf("%s: %s", name, value) : mem_printf("%s;", name);

	return mem_need(curl_slist_append(list, line));
}

static struct curl_slist *
headers_of(const struct fet *f, const struct fet_http *http)
{
	struct curl_slist *list = NULL;
	const char *key;
	json_t *value;

	if (http->sign) {
		list = add_header(list, "x-amz-content-sha256", "UNSIGNED-PAYLOAD");
		if (http->token)
			list = add_header(list, "x-amz-security-token", http->token);
		return list;
	}
	if (http->is_elsewhere)
		return NULL;
	json_object_foreach ((json_t *)(uintptr_t)f->spec.headers, key, value)
		list = add_header(list, key, json_string_value(value));
	return list;
}

static void
set_limits(CURL *curl, const struct transfer *t)
{
	(void)curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS, CONNECT_MS);
	(void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, 1L);
	(void)curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, STALL_S);
	(void)curl_easy_setopt(curl, CURLOPT_MAXFILESIZE_LARGE, (curl_off_t)t->limit);
}

static void
set_options(CURL *curl, struct transfer *t)
{
	(void)curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, "http,https");
	(void)curl_easy_setopt(curl, CURLOPT_USERAGENT, "drover/" DROVER_VERSION);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, on_body);
	(void)curl_easy_setopt(curl, CURLOPT_WRITEDATA, t);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, on_head);
	(void)curl_easy_setopt(curl, CURLOPT_HEADERDATA, t);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, on_progress);
	(void)curl_easy_setopt(curl, CURLOPT_XFERINFODATA, t);
	(void)curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
	if (t->f->spec.insecure) {
		(void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYPEER, 0L);
		(void)curl_easy_setopt(curl, CURLOPT_SSL_VERIFYHOST, 0L);
	}
	if (getenv(FET_CA_VARIABLE))
		(void)curl_easy_setopt(curl, CURLOPT_CAINFO, getenv(FET_CA_VARIABLE));
	if (getenv(FET_CA_DIR_VARIABLE))
		(void)curl_easy_setopt(curl, CURLOPT_CAPATH, getenv(FET_CA_DIR_VARIABLE));
	set_limits(curl, t);
}

/* User and password of the url also go to where the server redirects to itself. */
static void
set_user_of_url(CURL *curl, const char *text)
{
	CURLU *url = mem_need(curl_url());
	char *user = NULL, *password = NULL;

	if (curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK) {
		(void)curl_url_get(url, CURLUPART_USER, &user, CURLU_URLDECODE);
		(void)curl_url_get(url, CURLUPART_PASSWORD, &password, CURLU_URLDECODE);
	}
	(void)curl_easy_setopt(curl, CURLOPT_USERNAME, user);
	(void)curl_easy_setopt(curl, CURLOPT_PASSWORD, password);
	curl_free(user);
	curl_free(password);
	curl_url_cleanup(url);
}

static void
set_secrets(CURL *curl, const struct fet_http *http, struct curl_slist *headers)
{
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
	if (!http->sign) {
		set_user_of_url(curl, http->url);
		return;
	}
	(void)curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, http->sign);
	(void)curl_easy_setopt(curl, CURLOPT_USERNAME, http->user);
	(void)curl_easy_setopt(curl, CURLOPT_PASSWORD, http->password);
}

static void
drop_secrets(CURL *curl)
{
	(void)curl_easy_setopt(curl, CURLOPT_HTTPHEADER, NULL);
	(void)curl_easy_setopt(curl, CURLOPT_USERNAME, NULL);
	(void)curl_easy_setopt(curl, CURLOPT_PASSWORD, NULL);
}

static int
code_of_status(long status)
{
	return status == 404                    ? -ENOENT
	       : status == 401 || status == 403 ? -EACCES
	       : status >= 500 || status == 429 ? -EAGAIN
						: -EREMOTEIO;
}

/* libcurl's sentences have names of hosts and numbers, but no url. */
static int
explain(const struct transfer *t, CURLcode code, const char *text, struct err *e)
{
	long status = status_of(t->curl);

	if (t->f->told->give_up)
		return fet_say_slow(e);
	if (t->error)
		return err_set(e, t->error, "store what the server sends");
	if (t->too_large || (code == CURLE_FILESIZE_EXCEEDED && status / 100 == 2))
		return err_say(e, -EFBIG,
		    "the server sends more than the %llu bytes that are allowed",
		    (unsigned long long)t->limit);
	if (t->head_too_large)
		return err_say(
		    e, -EFBIG, "the server sends more than %u bytes of headers", HEAD_MAX);
	if (code == CURLE_TOO_MANY_REDIRECTS)
		return err_say(e, -ELOOP, "the server redirects more than %d times", REDIRECTS_MAX);
	if (code == CURLE_UNSUPPORTED_PROTOCOL)
		return err_say(e, -EREMOTEIO, "the server redirects to something other than http");
	if (code == CURLE_OPERATION_TIMEDOUT)
		return err_say(e, -ETIMEDOUT, "the server did not send it in time: %s", text);
	if (status >= 300 || (status > 0 && status < 200))
		return err_say(
		    e, code_of_status(status), "the server answered with status %ld", status);
	if (code == CURLE_PARTIAL_FILE || code == CURLE_GOT_NOTHING || code == CURLE_RECV_ERROR ||
	    code == CURLE_COULDNT_CONNECT || code == CURLE_SEND_ERROR ||
	    code == CURLE_COULDNT_RESOLVE_HOST)
		return err_say(e, -EAGAIN, "%s", text);
	return err_say(e, -EREMOTEIO, "%s", text);
}

/* Returns the url to which the server redirects, or NULL. libcurl owns it. */
static const char *
redirect_of(CURL *curl)
{
	char *url = NULL;

	if (status_of(curl) / 100 == 3)
		(void)curl_easy_getinfo(curl, CURLINFO_REDIRECT_URL, &url);
	return url;
}

/* Follows redirects, but none of a signed request to another server, which would refuse it. */
static CURLcode
perform(struct transfer *t, struct curl_slist *headers, uint64_t until_ms)
{
	cleanup_free char *url = mem_strdup(t->http->url);
	CURLcode code;
	bool same = true;

	set_secrets(t->curl, t->http, headers);
	for (unsigned n = 0; n <= REDIRECTS_MAX; n++) {
		const char *next;
		uint64_t now = clock_ms();

		if (now >= until_ms)
			return CURLE_OPERATION_TIMEDOUT;
		(void)curl_easy_setopt(t->curl, CURLOPT_URL, url);
		(void)curl_easy_setopt(t->curl, CURLOPT_TIMEOUT_MS, (long)(until_ms - now));
		code = curl_easy_perform(t->curl);
		next = code == CURLE_OK ? redirect_of(t->curl) : NULL;
		if (!next)
			return code;
		same = same && fet_is_same_server(t->http->url, next);
		if (!same && t->http->sign)
			return code;
		if (!same)
			drop_secrets(t->curl);
		free(url);
		url = mem_strdup(next);
	}
	return CURLE_TOO_MANY_REDIRECTS;
}

/* -EAGAIN: another try may succeed. */
static int
try_once(struct fet *f, const struct fet_http *http, int file_fd, uint64_t limit, uint64_t until_ms,
    struct err *e)
{
	static CURL *curl; /* for all transfers of the worker: it has the connections */
	cleanup_with(curl_slist_free_all) struct curl_slist *headers = headers_of(f, http);
	struct transfer t = { f, http, .file_fd = file_fd, .limit = limit };
	char text[CURL_ERROR_SIZE] = "";
	CURLcode code;

	if (ftruncate(file_fd, 0) < 0 || lseek(file_fd, 0, SEEK_SET) < 0)
		return err_set(e, -errno, "empty the file");
	if (curl)
		curl_easy_reset(curl);
	else
		curl = mem_need(curl_easy_init());
	t.curl = curl;
	set_options(curl, &t);
	(void)curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, text);
	code = perform(&t, headers, until_ms);
	if (code != CURLE_OK || status_of(curl) / 100 != 2)
		return explain(&t, code, *text ? text : curl_easy_strerror(code), e);
	return 0;
}

int
fet_http_get(struct fet *f, const struct fet_http *http, int file_fd, uint64_t limit, struct err *e)
{
	const uint64_t until_ms = clock_ms() + http->timeout_ms;
	int r = -EAGAIN;

	f->told->transfers = true;
	for (unsigned i = 0; i < TRIES && r == -EAGAIN; i++) {
		if (i > 0)
			(void)nanosleep(&(struct timespec){ .tv_nsec = i * PAUSE_NS }, NULL);
		if (i == 0 || clock_ms() < until_ms)
			r = try_once(f, http, file_fd, limit, until_ms, e);
	}
	f->told->transfers = false;
	return r;
}
