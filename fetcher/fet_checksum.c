// SPDX-License-Identifier: Apache-2.0
/* fet_checksum.c: checksums of artifacts. Runs in: a worker of the fetcher. */
#include "fetcher/fet_checksum.h"

#include <errno.h>
#include <md5.h>
#include <sha.h>
#include <sha2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"

#define BUFFER_SIZE 65536
#define LINE_SIZE   4096
#define WORDS_MAX   5
#define BLANKS      " \t\r\f\v"

static const struct type {
	const char *name;
	size_t size;
} types[CHECKSUM_TYPES] = {
	[CHECKSUM_MD5] = { "md5", MD5_DIGEST_LENGTH },
	[CHECKSUM_SHA1] = { "sha1", SHA1_DIGEST_LENGTH },
	[CHECKSUM_SHA256] = { "sha256", SHA256_DIGEST_LENGTH },
	[CHECKSUM_SHA512] = { "sha512", SHA512_DIGEST_LENGTH },
};

static int
hex_digit(char c)
{
	return c >= '0' && c <= '9'   ? c - '0'
	       : c >= 'a' && c <= 'f' ? c - 'a' + 10
	       : c >= 'A' && c <= 'F' ? c - 'A' + 10
				      : -1;
}

static bool
parse_hex(const char *text, size_t size, uint8_t *ret)
{
	if (strlen(text) != 2 * size)
		return false;
	for (size_t i = 0; i < size; i++) {
		int high = hex_digit(text[2 * i]), low = hex_digit(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return false;
		ret[i] = (uint8_t)(high << 4 | low);
	}
	return true;
}

/* type NULL: the number of digits says it. */
static bool
parse_value(const char *type, size_t type_len, const char *hex, struct checksum *ret)
{
	for (int i = 0; i < CHECKSUM_TYPES; i++) {
		if (type && (strlen(types[i].name) != type_len ||
				strncasecmp(type, types[i].name, type_len) != 0))
			continue;
		if (parse_hex(hex, types[i].size, ret->bytes)) {
			ret->type = (enum checksum_type)i;
			return true;
		}
	}
	return false;
}

int
checksum_parse(const char *text, struct checksum *ret, struct err *e)
{
	const char *colon = strchr(text, ':');

	if (parse_value(colon ? text : NULL, colon ? (size_t)(colon - text) : 0,
		colon ? colon + 1 : text, ret))
		return 0;
	return err_say(e, -EINVAL,
	    "the checksum \"%.150s\" is not valid: expected md5, sha1, sha256 or sha512, a colon, "
	    "and "
	    "as many hexadecimal digits as it has",
	    text);
}

/* A name may have directories that the path ends with. */
static bool
is_name(const char *word, const char *name, const char *path)
{
	size_t len, path_len = strlen(path);

	word += *word == '*' || *word == '?';
	word += strncmp(word, "./", 2) == 0 ? 2 : 0;
	word += *word == '/';
	len = strlen(word);
	return strcmp(word, name) == 0 ||
	       (len > 0 && len < path_len && path[path_len - len - 1] == '/' &&
		   strcmp(path + path_len - len, word) == 0);
}

/* Returns true if the line has a checksum for this file. */
static bool
read_line(char *line, const char *name, const char *path, struct checksum *ret)
{
	char *words[WORDS_MAX], *rest = NULL;
	size_t n = 0, len;

	for (char *w = strtok_r(line, BLANKS, &rest); w && n < WORDS_MAX;
	     w = strtok_r(NULL, BLANKS, &rest))
		words[n++] = w;
	if (n == 4) {
		len = strlen(words[1]);
		if (len < 3 || words[1][0] != '(' || words[1][len - 1] != ')')
			return false;
		words[1][len - 1] = '\0';
		return is_name(words[1] + 1, name, path) &&
		       parse_value(words[0], strlen(words[0]), words[3], ret);
	}
	return n > 0 && (n != 2 || is_name(words[1], name, path)) &&
	       parse_value(NULL, 0, words[0], ret);
}

int
checksum_find(const char *list, size_t len, const char *name, const char *path,
    struct checksum *ret, struct err *e)
{
	const char *end = list + len;

	while (list < end) {
		const char *newline = memchr(list, '\n', (size_t)(end - list));
		size_t n = (size_t)((newline ? newline : end) - list);
		char line[LINE_SIZE];

		if (n < sizeof line) {
			memcpy(line, list, n);
			line[n] = '\0';
			if (read_line(line, name, path, ret))
				return 0;
		}
		list += n + 1;
	}
	return err_say(e, -ENOENT, "the file with checksums has none for \"%.150s\"", name);
}

union context {
	MD5_CTX md5;
	SHA1_CTX sha1;
	SHA2_CTX sha2;
};

static void
update(union context *c, enum checksum_type type, const uint8_t *data, size_t len)
{
	switch (type) {
	case CHECKSUM_MD5:
		MD5Update(&c->md5, data, len);
		break;
	case CHECKSUM_SHA1:
		SHA1Update(&c->sha1, data, len);
		break;
	case CHECKSUM_SHA256:
		SHA256Update(&c->sha2, data, len);
		break;
	default:
		SHA512Update(&c->sha2, data, len);
	}
}

static void
begin(union context *c, enum checksum_type type)
{
	switch (type) {
	case CHECKSUM_MD5:
		MD5Init(&c->md5);
		break;
	case CHECKSUM_SHA1:
		SHA1Init(&c->sha1);
		break;
	case CHECKSUM_SHA256:
		SHA256Init(&c->sha2);
		break;
	default:
		SHA512Init(&c->sha2);
	}
}

static void
finish(union context *c, enum checksum_type type, uint8_t *ret)
{
	switch (type) {
	case CHECKSUM_MD5:
		MD5Final(ret, &c->md5);
		break;
	case CHECKSUM_SHA1:
		SHA1Final(ret, &c->sha1);
		break;
	case CHECKSUM_SHA256:
		SHA256Final(ret, &c->sha2);
		break;
	default:
		SHA512Final(ret, &c->sha2);
	}
}

static void
print_hex(const uint8_t *bytes, size_t size, char *ret)
{
	for (size_t i = 0; i < size; i++)
		(void)sprintf(ret + 2 * i, "%02x", bytes[i]);
}

int
checksum_verify(const struct checksum *c, int fd, struct err *e)
{
	const size_t size = types[c->type].size;
	char found[129], wanted[129];
	uint8_t buf[BUFFER_SIZE], digest[64];
	union context context;
	ssize_t n;

	begin(&context, c->type);
	for (off_t at = 0; (n = pread(fd, buf, sizeof buf, at)) > 0; at += n)
		update(&context, c->type, buf, (size_t)n);
	if (n < 0)
		return err_set(e, -errno, "read what was downloaded");
	finish(&context, c->type, digest);
	if (memcmp(digest, c->bytes, size) == 0)
		return 0;
	print_hex(digest, size, found);
	print_hex(c->bytes, size, wanted);
	return err_say(
	    e, -EBADMSG, "its %s is %s, but must be %s", types[c->type].name, found, wanted);
}
