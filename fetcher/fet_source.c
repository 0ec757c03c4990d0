// SPDX-License-Identifier: Apache-2.0
/* fet_source.c: takes the source of an artifact apart, as go-getter does:
 * [getter::][scheme://]host/path[//subdir][?query]. Runs in: a worker of the fetcher. */
#include "fetcher/fet_source.h"

#include <ctype.h>
#include <curl/curl.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "model/engine/text.h"

#define PARAMETERS_MAX 64

DEFINE_CLEANUP(CURLU *, curl_url_cleanup);

/* --- the query --- */

static char *
decode(const char *text)
{
	char *made = mem_need(curl_easy_unescape(NULL, text, 0, NULL));
	char *copy = mem_strdup(made);

	curl_free(made);
	return copy;
}

/* In a query, "+" is a space. */
static char *
decode_part(const char *text, size_t len)
{
	cleanup_free char *part = mem_strndup(text, len);

	for (char *at = part; *at; at++)
		if (*at == '+')
			*at = ' ';
	return decode(part);
}

static bool
has_control(const char *text)
{
	for (; *text; text++)
		if ((unsigned char)*text < ' ' || *text == 0x7f)
			return true;
	return false;
}

static int
read_query(struct fet_source *s, const char *query, struct err *e)
{
	while (*query) {
		size_t len = strcspn(query, "&"), name = strcspn(query, "=&");
		cleanup_free char *key = decode_part(query, name);
		cleanup_free char *value =
		    name < len ? decode_part(query + name + 1, len - name - 1) : mem_strdup("");

		if (has_control(key) || has_control(value))
			return err_say(
			    e, -EINVAL, "a parameter of the source has a control character");
		if (*key)
			string_map_set(&s->query, key, value);
		if (s->query.n > PARAMETERS_MAX)
			return err_say(
			    e, -EINVAL, "the source has more than %d parameters", PARAMETERS_MAX);
		query += len + (query[len] == '&');
	}
	return 0;
}

static void
add_options(struct fet_source *s, const json_t *options)
{
	const char *key;
	json_t *value;

	json_object_foreach ((json_t *)(uintptr_t)options, key, value)
		string_map_set(&s->query, key, json_string_value(value));
}

char *
fet_source_take(struct fet_source *s, const char *name)
{
	for (size_t i = 0; i < s->query.n; i++) {
		struct string_pair pair = s->query.v[i];

		if (strcmp(pair.key, name) != 0)
			continue;
		s->query.v[i] = s->query.v[--s->query.n];
		free(pair.key);
		return pair.value ? pair.value : mem_strdup("");
	}
	return NULL;
}

static void
append_encoded(struct text *t, const char *text)
{
	char *made = mem_need(curl_easy_escape(NULL, text, 0));

	text_printf(t, "%s", made);
	curl_free(made);
}

char *
fet_source_url(const struct fet_source *s)
{
	struct text t = { 0 };

	text_printf(&t, "%s", s->base);
	for (size_t i = 0; i < s->query.n; i++) {
		text_printf(&t, i == 0 ? "?" : "&");
		append_encoded(&t, s->query.v[i].key);
		text_printf(&t, "=");
		append_encoded(&t, str(s->query.v[i].value));
	}
	return t.text;
}

/* --- sources without a scheme --- */

/* github.com/owner/repo/a/b becomes git::https://github.com/owner/repo.git//a/b. */
static char *
detect_forge(const char *source)
{
	static const char *const hosts[] = { "github.com/", "gitlab.com/", "bitbucket.org/" };

	for (size_t i = 0; i < ELEMENTSOF(hosts); i++) {
		const char *owner = source + strlen(hosts[i]), *repo, *end;

		if (strncmp(source, hosts[i], strlen(hosts[i])) != 0)
			continue;
		repo = strchr(owner, '/');
		if (!repo || !repo[1])
			return NULL;
		end = repo + 1 + strcspn(repo + 1, "/");
		return mem_printf("git::https://%.*s%s%s%s", (int)(end - source), source,
		    end - source > 4 && strncmp(end - 4, ".git", 4) == 0 ? "" : ".git",
		    *end ? "//" : "", *end ? end + 1 : "");
	}
	return NULL;
}

/* git@host:path becomes git::ssh://git@host/path. */
static char *
detect_ssh(const char *source)
{
	const char *at = strchr(source, '@'), *colon = at ? strchr(at, ':') : NULL;

	if (!colon || memchr(source, '/', (size_t)(colon - source)))
		return NULL;
	return mem_printf(
	    "git::ssh://%.*s/%s", (int)(colon - source), source, colon + 1 + (colon[1] == '/'));
}

static char *
detect_s3(const char *source)
{
	const char *host_end = strchr(source, '/');

	if (!host_end || host_end - source < 14 ||
	    strncmp(host_end - 14, ".amazonaws.com", 14) != 0)
		return NULL;
	return mem_printf("s3::https://%s", source);
}

/* An absolute path becomes a url of this machine. */
static char *
detect_file(const char *source)
{
	cleanup_with(curl_url_cleanup) CURLU *url = mem_need(curl_url());
	char *made = NULL, *copy;

	if (*source != '/' || curl_url_set(url, CURLUPART_SCHEME, "file", 0) != CURLUE_OK ||
	    curl_url_set(url, CURLUPART_PATH, source, CURLU_URLENCODE) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_URL, &made, 0) != CURLUE_OK)
		return NULL;
	copy = mem_strdup(made);
	curl_free(made);
	return copy;
}

static bool
has_scheme(const char *source)
{
	const char *end = strstr(source, "://");

	if (!end || end == source)
		return false;
	for (const char *at = source; at < end; at++)
		if (!isalnum((unsigned char)*at) && !strchr("+.-", *at))
			return false;
	return true;
}

static char *
detect(const char *source)
{
	char *found = detect_forge(source);

	if (!found)
		found = detect_ssh(source);
	if (!found)
		found = detect_s3(source);
	return found ? found : detect_file(source);
}

/* --- the parts --- */

/* Takes "git::" away from *at. */
static char *
take_getter(const char **at)
{
	const char *start = *at, *end = start;

	while (isalnum((unsigned char)*end))
		end++;
	if (end == start || strncmp(end, "::", 2) != 0)
		return NULL;
	*at = end + 2;
	return mem_strndup(start, (size_t)(end - start));
}

static bool
climbs(const char *path)
{
	while (*path) {
		size_t len = strcspn(path, "/\\");

		if (len == 2 && strncmp(path, "..", 2) == 0)
			return true;
		path += len + (path[len] != '\0');
	}
	return false;
}

/* Cuts "//subdir" off. */
static int
take_subdir(struct fet_source *s, struct err *e)
{
	char *scheme = strstr(s->base, "://"), *at = strstr(scheme ? scheme + 3 : s->base, "//");

	if (!at)
		return 0;
	*at = '\0';
	at += 2 + strspn(at + 2, "/");
	if (climbs(at))
		return err_say(e, -EINVAL, "the subdirectory of the source contains \"..\"");
	if (*at)
		s->subdir = decode(at);
	return 0;
}

static int
read_url(struct fet_source *s, struct err *e)
{
	cleanup_with(curl_url_cleanup) CURLU *url = mem_need(curl_url());
	char *scheme = NULL, *path = NULL;

	if (curl_url_set(url, CURLUPART_URL, s->base, CURLU_NON_SUPPORT_SCHEME) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_SCHEME, &scheme, 0) != CURLUE_OK ||
	    curl_url_get(url, CURLUPART_PATH, &path, CURLU_URLDECODE) != CURLUE_OK) {
		curl_free(scheme);
		return err_say(e, -EINVAL, "the source is not a valid url");
	}
	s->scheme = mem_strdup(scheme);
	s->path = mem_strdup(path);
	curl_free(scheme);
	curl_free(path);
	return 0;
}

static int
check_getter(const struct fet_source *s, struct err *e)
{
	const char *getter = s->getter;

	if (strcmp(getter, "hg") == 0 || strcmp(getter, "gcs") == 0)
		return err_say(e, -EINVAL,
		    "%s is not supported: only http, https, git, s3 and file are", getter);
	if (strcmp(getter, "file") == 0)
		return strcmp(s->scheme, "file") == 0
			   ? 0
			   : err_say(
				 e, -EINVAL, "the url of file:: has scheme \"%.20s\"", s->scheme);
	if (strcmp(getter, "http") == 0 || strcmp(getter, "https") == 0)
		return strcmp(s->scheme, "http") == 0 || strcmp(s->scheme, "https") == 0
			   ? 0
			   : err_say(e, -EINVAL, "the url of %s:: has scheme \"%.20s\"", getter,
				 s->scheme);
	if (strcmp(getter, "git") == 0 || strcmp(getter, "s3") == 0)
		return 0;
	return err_say(e, -EINVAL,
	    "scheme \"%.20s\" is not supported: only http, https, git, s3 and file are", getter);
}

int
fet_source_read(const struct fet_spec *spec, struct fet_source *ret, struct err *e)
{
	size_t len = strcspn(spec->source, "?");
	cleanup_free char *source = mem_strndup(spec->source, len), *found = NULL;
	const char *at = source;
	int r;

	*ret = (struct fet_source){ .getter = take_getter(&at) };
	if (!has_scheme(at)) {
		found = detect(at);
		if (!found)
			return err_say(e, -EINVAL,
			    "the source has no scheme, and is neither a repository nor a bucket "
			    "nor "
			    "an absolute path");
		at = found;
		if (!ret->getter)
			ret->getter = take_getter(&at);
		else
			free(take_getter(&at));
	}
	ret->base = mem_strdup(at);
	if ((r = take_subdir(ret, e)) < 0 || (r = read_url(ret, e)) < 0)
		return r;
	if (!ret->getter)
		ret->getter = mem_strdup(ret->scheme);
	if ((r = check_getter(ret, e)) < 0)
		return r;
	r = read_query(ret, spec->source[len] ? spec->source + len + 1 : "", e);
	if (r < 0)
		return r;
	add_options(ret, spec->options);
	ret->archive = fet_source_take(ret, "archive");
	ret->checksum = fet_source_take(ret, "checksum");
	ret->filename = fet_source_take(ret, "filename");
	return 0;
}

void
fet_source_done(struct fet_source *s)
{
	string_map_done(&s->query);
	free(s->getter);
	free(s->scheme);
	free(s->base);
	free(s->path);
	free(s->subdir);
	free(s->archive);
	free(s->checksum);
	free(s->filename);
}

const char *
fet_source_name(const struct fet_source *s)
{
	const char *slash = strrchr(s->path, '/');

	return slash ? slash + 1 : s->path;
}
