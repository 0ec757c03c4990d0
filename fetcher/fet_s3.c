// SPDX-License-Identifier: Apache-2.0
/* fet_s3.c: urls of buckets, at Amazon or at another server, with the bucket in the host's name or
 * in the path, and how requests to them are signed. Runs in: a worker of the fetcher. */
#include "fetcher/fet_s3.h"

#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "fetcher/fet_aws_keys.h"
#include "model/engine/text.h"

#define DEFAULT_REGION "us-east-1"

DEFINE_CLEANUP(CURLU *, curl_url_cleanup);

/* --- the endpoint --- */

/* Returns the length of the host's name before Amazon's domain, or 0 if it is another's. */
static size_t
amazon_len(const char *host)
{
	static const char *const domains[] = { ".amazonaws.com", ".amazonaws.com.cn" };
	size_t len = strlen(host);

	for (size_t i = 0; i < ELEMENTSOF(domains); i++) {
		size_t n = strlen(domains[i]);

		if (len > n && strcmp(host + len - n, domains[i]) == 0)
			return len - n;
	}
	return 0;
}

/* Finds the label of the service, s3 or s3-REGION, in the name of one of Amazon's hosts: the bucket
 * may be before it, the region in or after it. */
static const char *
find_service(const char *host, size_t len)
{
	for (const char *at = host; at < host + len; at += strcspn(at, ".") + 1) {
		size_t n = strcspn(at, ".");

		if ((n == 2 && strncmp(at, "s3", 2) == 0) || (n > 3 && strncmp(at, "s3-", 3) == 0))
			return at;
	}
	return NULL;
}

static char *
region_of(const char *host)
{
	size_t len = amazon_len(host);
	const char *at = find_service(host, len), *end = host + len;

	if (!at)
		return mem_strdup(DEFAULT_REGION);
	if (at[2] == '-')
		return mem_strndup(at + 3, strcspn(at + 3, "."));
	at += 3;
	if (at < end && strncmp(at, "dualstack.", 10) == 0)
		at += 10;
	return at < end ? mem_strndup(at, strcspn(at, ".")) : mem_strdup(DEFAULT_REGION);
}

/* Splits /bucket/key. */
static int
split_path(const char *path, const char **ret_key, size_t *ret_bucket_len, struct err *e)
{
	size_t len = strcspn(path + (*path == '/'), "/");

	if (*path != '/' || len == 0 || path[1 + len] != '/')
		return err_say(e, -EINVAL,
		    "the source of s3 must be a host, a bucket and the name of an object");
	*ret_bucket_len = len;
	*ret_key = path + 1 + len + 1;
	return 0;
}

static int
read_part(CURLU *url, CURLUPart part, char **ret)
{
	char *found = NULL;

	if (curl_url_get(url, part, &found, 0) != CURLUE_OK)
		return -EINVAL;
	*ret = mem_strdup(found);
	curl_free(found);
	return 0;
}

/* A bucket that is a part of the host's name needs none in the path. */
static int
read_endpoint(const struct fet_source *s, struct fet_s3 *ret, char **ret_host, struct err *e)
{
	cleanup_with(curl_url_cleanup) CURLU *url = mem_need(curl_url());
	cleanup_free char *port = NULL;
	const char *key = s->path + (*s->path == '/');
	size_t bucket_len = 0;
	int r = 0;

	if (curl_url_set(url, CURLUPART_URL, s->base, 0) != CURLUE_OK ||
	    read_part(url, CURLUPART_HOST, ret_host) < 0)
		return err_say(e, -EINVAL, "the source is not a valid url");
	(void)read_part(url, CURLUPART_PORT, &port);
	if (find_service(*ret_host, amazon_len(*ret_host)) <= (const char *)*ret_host)
		r = split_path(s->path, &key, &bucket_len, e);
	if (r < 0)
		return r;
	ret->bucket = mem_printf("%s://%s%s%s%s%.*s", s->scheme, *ret_host, port ? ":" : "",
	    port ? port : "", bucket_len > 0 ? "/" : "", (int)bucket_len, s->path + 1);
	ret->key = mem_strdup(key);
	return 0;
}

/* --- urls --- */

/* Signatures have the path as Amazon encodes it, whatever the source's way to write it was. */
static void
append_path(struct text *t, const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/");
		char *made = mem_need(curl_easy_escape(NULL, len > 0 ? path : "", (int)len));

		if (len > 0)
			text_printf(t, "%s", made);
		curl_free(made);
		path += len;
		if (*path == '/') {
			text_printf(t, "/");
			path++;
		}
	}
}

static void
append_parameter(struct text *t, const char *name, const char *value)
{
	char *made = mem_need(curl_easy_escape(NULL, value, 0));

	text_printf(t, "%s=%s", name, made);
	curl_free(made);
}

char *
fet_s3_url(const struct fet_s3 *s3, const char *key)
{
	struct text t = { 0 };

	text_printf(&t, "%s/", s3->bucket);
	append_path(&t, key);
	if (key == s3->key && s3->version)
		append_parameter(&t, "?versionId", s3->version);
	return t.text;
}

/* The parameters are in the order of their names, which signatures need. */
char *
fet_s3_list_url(const struct fet_s3 *s3, const char *prefix, const char *token)
{
	struct text t = { 0 };

	text_printf(&t, "%s/?", s3->bucket);
	if (token)
		append_parameter(&t, "continuation-token", token);
	append_parameter(&t, token ? "&list-type" : "list-type", "2");
	append_parameter(&t, "&prefix", prefix);
	return t.text;
}

struct fet_http
fet_s3_request(const struct fet_s3 *s3, const char *url, uint64_t timeout_ms)
{
	return (struct fet_http){ url, s3->sign, s3->user, s3->password, s3->token, timeout_ms,
		.is_elsewhere = true };
}

/* --- the source --- */

/* Returns the keys of the source or those of this machine. */
static int
read_keys(struct fet_source *s, struct fet_s3 *ret, struct err *e)
{
	cleanup_free char *profile = fet_source_take(s, "aws_profile");
	struct aws_keys keys = { 0 };
	int r;

	ret->user = fet_source_take(s, "aws_access_key_id");
	ret->password = fet_source_take(s, "aws_access_key_secret");
	ret->token = fet_source_take(s, "aws_access_token");
	if (!(profile && *profile) && (ret->user || ret->password || ret->token))
		return 0;
	r = aws_keys_of_machine(profile && *profile ? profile : NULL, &keys, e);
	if (r < 0)
		return r;
	free(ret->user);
	free(ret->password);
	free(ret->token);
	ret->user = keys.id;
	ret->password = keys.secret;
	ret->token = keys.token;
	return 0;
}

int
fet_s3_read(struct fet_source *s, struct fet_s3 *ret, struct err *e)
{
	cleanup_free char *region = fet_source_take(s, "region"), *host = NULL;
	int r;

	*ret = (struct fet_s3){ .version = fet_source_take(s, "version") };
	if (strcmp(s->scheme, "http") != 0 && strcmp(s->scheme, "https") != 0)
		return err_say(e, -EINVAL, "the url of s3:: must be http:// or https://");
	if ((r = read_endpoint(s, ret, &host, e)) < 0 || (r = read_keys(s, ret, e)) < 0)
		return r;
	if (!ret->user || !ret->password)
		return 0;
	if (!region || !*region) {
		free(region);
		region = region_of(host);
	}
	ret->sign = mem_printf("aws:amz:%s:s3", region);
	return 0;
}

void
fet_s3_done(struct fet_s3 *s3)
{
	free(s3->bucket);
	free(s3->key);
	free(s3->version);
	free(s3->sign);
	free(s3->user);
	free(s3->password);
	free(s3->token);
}
