// SPDX-License-Identifier: Apache-2.0
/* image_ref.c: references to container images. Runs in: supervisor, cli. */
#include "common/image_ref.h"

#include <ctype.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_REGISTRY "docker.io"

/* The algorithms of the OCI image specification ("Content Descriptors"), with their digits. */
static const struct algorithm {
	const char *name;
	size_t digits;
} algorithms[] = { { "sha256:", 64 }, { "sha384:", 96 }, { "sha512:", 128 } };

static bool
is_lower_alnum(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool
is_alnum(char c)
{
	return is_lower_alnum(c) || (c >= 'A' && c <= 'Z');
}

static bool
is_hex(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++)
		if (!(text[i] >= '0' && text[i] <= '9') && !(text[i] >= 'a' && text[i] <= 'f'))
			return false;
	return true;
}

static bool
is_digest(const char *text)
{
	for (const struct algorithm *a = algorithms; a < algorithms + 3; a++) {
		size_t n = strlen(a->name);

		if (strncmp(text, a->name, n) == 0)
			return strlen(text + n) == a->digits && is_hex(text + n, a->digits);
	}
	return false;
}

static bool
is_tag(const char *text)
{
	size_t n = strlen(text);

	if (n == 0 || n >= IMAGE_TAG_SIZE || (!is_alnum(text[0]) && text[0] != '_'))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!is_alnum(text[i]) && !strchr("_.-", text[i]))
			return false;
	return true;
}

/* A port of 1 to 5 digits. */
static bool
is_port(const char *text)
{
	size_t n = strspn(text, "0123456789");

	return n > 0 && n <= 5 && text[n] == '\0' && atoi(text) <= 65535;
}

/* Labels of letters, digits and inner hyphens with dots between them. */
static bool
is_host_name(const char *text, size_t n)
{
	for (size_t i = 0; i < n; i++) {
		bool first = i == 0 || text[i - 1] == '.', last = i + 1 == n || text[i + 1] == '.';

		if (text[i] == '.'   ? first || last
		    : text[i] == '-' ? first || last
				     : !is_alnum(text[i]))
			return false;
	}
	return n > 0;
}

static bool
is_registry(const char *text)
{
	const char *end = text + strcspn(text, ":");

	if (text[0] == '[') {
		size_t n = strspn(text + 1, "0123456789abcdefABCDEF:");

		if (n < 2 || text[1 + n] != ']')
			return false;
		end = text + n + 2;
		return *end == '\0' || (*end == ':' && is_port(end + 1));
	}
	return is_host_name(text, (size_t)(end - text)) && (*end == '\0' || is_port(end + 1));
}

/* Returns the length of the separator at text that may stand between two characters of a
 * component: ".", "_", "__" or any number of "-"; 0: there is none. */
static size_t
separator(const char *text)
{
	size_t n = strspn(text, "-");

	if (n > 0)
		return n;
	if (text[0] == '_')
		return text[1] == '_' ? 2 : 1;
	return text[0] == '.';
}

static bool
is_repository(const char *text)
{
	for (;; text++) {
		if (!is_lower_alnum(*text))
			return false;
		while (is_lower_alnum(*text) ||
		       (separator(text) && is_lower_alnum(text[separator(text)])))
			text += is_lower_alnum(*text) ? 1 : separator(text);
		if (*text != '/')
			return *text == '\0';
	}
}

/* Whether the part of a name before its first slash names a registry. "a/b" is a repository of
 * Docker Hub, "a.b/c", "a:1/c" and "localhost/c" are not. Repositories have no upper case letters,
 * so a part with one is a host. */
static bool
names_registry(const char *part)
{
	if (strpbrk(part, ".:[") || strcmp(part, "localhost") == 0)
		return true;
	for (; *part; part++)
		if (isupper((unsigned char)*part))
			return true;
	return false;
}

/* Splits a name without tag and digest. */
static int
split_name(char *name, const char *text, struct image_ref *ref, struct err *e)
{
	char *slash = strchr(name, '/');
	const char *registry = DEFAULT_REGISTRY, *repository = name;

	if (slash) {
		*slash = '\0';
		if (names_registry(name)) {
			registry = strcmp(name, "index.docker.io") == 0 ? DEFAULT_REGISTRY : name;
			repository = slash + 1;
		} else
			*slash = '/';
	}
	if (!is_registry(registry))
		return err_say(e, -EINVAL,
		    "image \"%.300s\": \"%s\" is not the name of a registry (host or host:port)",
		    text, registry);
	if (!is_repository(repository))
		return err_say(e, -EINVAL,
		    "image \"%.300s\": \"%s\" is not the name of a repository: it has lower case "
		    "letters and digits, with single \".\", \"_\", \"-\" or \"/\" between them",
		    text, repository);
	if (strlen(registry) + strlen(repository) + sizeof "/library/" > IMAGE_NAME_SIZE)
		return err_say(
		    e, -EINVAL, "image \"%.300s\": the name is longer than 245 bytes", text);
	(void)strcpy(ref->registry, registry);
	(void)snprintf(ref->repository, sizeof ref->repository, "%s%s",
	    strcmp(registry, DEFAULT_REGISTRY) == 0 && !strchr(repository, '/') ? "library/" : "",
	    repository);
	return 0;
}

int
image_ref_parse(const char *text, struct image_ref *ret, struct err *e)
{
	char name[IMAGE_NAME_SIZE + IMAGE_TAG_SIZE + IMAGE_DIGEST_SIZE], *digest, *tag;
	struct image_ref ref = { 0 };
	const char *rest = text;
	int r;

	if (strncmp(rest, "https://", 8) == 0)
		rest += 8;
	else if (strncmp(rest, "docker://", 9) == 0)
		rest += 9;
	if (strlen(rest) >= sizeof name)
		return err_say(e, -EINVAL, "image \"%.300s…\": the name is too long", text);
	if (strlen(rest) == 64 && is_hex(rest, 64))
		return err_say(e, -EINVAL,
		    "image \"%s\": an id of an image cannot be fetched; write its name, or "
		    "NAME@sha256:ID with the digest of a manifest",
		    text);
	(void)strcpy(name, rest);
	digest = strchr(name, '@');
	if (digest) {
		*digest++ = '\0';
		if (!is_digest(digest))
			return err_say(e, -EINVAL,
			    "image \"%.300s\": after the @ must be a digest such as sha256: and 64 "
			    "digits 0-9a-f",
			    text);
		(void)strcpy(ref.digest, digest);
	}
	tag = strrchr(name, ':');
	if (tag && !strchr(tag, '/')) {
		*tag++ = '\0';
		if (!is_tag(tag))
			return err_say(e, -EINVAL,
			    "image \"%.300s\": \"%.140s\" is not a tag: it has 1 to 128 letters, "
			    "digits, \"_\", \".\" and \"-\", and begins with none of the last two",
			    text, tag);
		(void)strcpy(ref.tag, tag);
	} else if (!digest)
		(void)strcpy(ref.tag, "latest");
	r = split_name(name, text, &ref, e);
	if (r == 0)
		*ret = ref;
	return r;
}

void
image_ref_format(const struct image_ref *ref, char ret[IMAGE_REF_SIZE])
{
	(void)snprintf(ret, IMAGE_REF_SIZE, "%s/%s%s%s", ref->registry, ref->repository,
	    ref->digest[0] ? "@" : ":", ref->digest[0] ? ref->digest : ref->tag);
}
