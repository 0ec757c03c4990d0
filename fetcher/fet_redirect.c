// SPDX-License-Identifier: Apache-2.0
/* fet_redirect.c: what a server that redirects may learn. Runs in: a worker of the fetcher. */
#include "fetcher/fet_redirect.h"

#include <curl/curl.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

struct server {
	char *scheme, *host, *port;
};

static bool
read_server(const char *text, struct server *ret)
{
	CURLU *url = curl_url();
	bool known = url && curl_url_set(url, CURLUPART_URL, text, 0) == CURLUE_OK &&
		     curl_url_get(url, CURLUPART_SCHEME, &ret->scheme, 0) == CURLUE_OK &&
		     curl_url_get(url, CURLUPART_HOST, &ret->host, 0) == CURLUE_OK &&
		     curl_url_get(url, CURLUPART_PORT, &ret->port, CURLU_DEFAULT_PORT) == CURLUE_OK;

	curl_url_cleanup(url);
	return known;
}

static void
server_done(struct server *s)
{
	curl_free(s->scheme);
	curl_free(s->host);
	curl_free(s->port);
}

static bool
is_same(const struct server *from, const struct server *to)
{
	bool upgraded = strcmp(from->scheme, "http") == 0 && strcmp(from->port, "80") == 0 &&
			strcmp(to->scheme, "https") == 0 && strcmp(to->port, "443") == 0;

	return strcasecmp(from->host, to->host) == 0 &&
	       (upgraded ||
		   (strcmp(from->scheme, to->scheme) == 0 && strcmp(from->port, to->port) == 0));
}

bool
fet_is_same_server(const char *from, const char *to)
{
	struct server a = { 0 }, b = { 0 };
	bool same = read_server(from, &a) && read_server(to, &b) && is_same(&a, &b);

	server_done(&a);
	server_done(&b);
	return same;
}
