// SPDX-License-Identifier: Apache-2.0
/* seal.c: encrypts secrets before they are written to state.db. Runs in: supervisor. */
#include "supervisor/core/seal.h"

#include <errno.h>
#include <fcntl.h>
#include <nettle/siv-cmac.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"

/* A sealed value: its format, the nonce, and what the cipher makes (the tag and the text). */
#define FORMAT_BYTES 1
#define FORMAT       1
#define NONCE_BYTES  16
#define HEAD_BYTES   (FORMAT_BYTES + NONCE_BYTES)

struct seal {
	char *dir;
	bool ready; /* the key is in the file and in ctx */
	struct siv_cmac_aes256_ctx ctx;
};

/* Uses the key in the file, if that is one. Returns 0 or -errno; -ENOENT without a file. */
static int
read_key(struct seal *s)
{
	cleanup_free char *path = mem_printf("%s/seal.key", s->dir);
	cleanup_close int fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	uint8_t key[SIV_CMAC_AES256_KEY_SIZE + 1];
	ssize_t n;

	if (fd < 0)
		return -errno;
	n = fd_read_full(fd, key, sizeof key);
	if (n == SIV_CMAC_AES256_KEY_SIZE) {
		siv_cmac_aes256_set_key(&s->ctx, key);
		s->ready = true;
	}
	explicit_bzero(key, sizeof key);
	return s->ready ? 0 : n < 0 ? (int)n : -EBADMSG;
}

struct seal *
seal_new(const char *dir, struct err *e)
{
	struct seal *s = mem_new(struct seal);
	int r;

	s->dir = mem_strdup(dir);
	r = read_key(s);
	if (r == -EBADMSG)
		(void)err_say(e, r, "%s/seal.key is not a key of drover, which has %d bytes", dir,
		    SIV_CMAC_AES256_KEY_SIZE);
	else if (r < 0 && r != -ENOENT)
		(void)err_set(e, r, "read %s/seal.key", dir);
	return s;
}

void
seal_free(struct seal *s)
{
	if (!s)
		return;
	explicit_bzero(&s->ctx, sizeof s->ctx);
	free(s->dir);
	free(s);
}

/* Renames seal.key to the first free name of seal.key.old, seal.key.old2, seal.key.old3, …: each of
 * them may be the key of something. */
static int
keep_old_key(int dir_fd)
{
	char name[sizeof "seal.key.old" + 3 * sizeof(int)] = "seal.key.old";
	struct stat st;

	for (int i = 2; fstatat(dir_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0; i++)
		(void)snprintf(name, sizeof name, "seal.key.old%d", i);
	if (errno != ENOENT || (renameat(dir_fd, "seal.key", dir_fd, name) < 0 && errno != ENOENT))
		return -errno;
	return 0;
}

static int
write_key(int dir_fd, const uint8_t key[SIV_CMAC_AES256_KEY_SIZE])
{
	cleanup_close int fd = -1;
	int r;

	(void)unlinkat(dir_fd, "seal.key.new", 0);
	fd = openat(
	    dir_fd, "seal.key.new", O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return -errno;
	r = fd_write_full(fd, key, SIV_CMAC_AES256_KEY_SIZE);
	if (r < 0)
		return r;
	if (fsync(fd) < 0)
		return -errno;
	r = keep_old_key(dir_fd);
	if (r < 0)
		return r;
	if (renameat(dir_fd, "seal.key.new", dir_fd, "seal.key") < 0 || fsync(dir_fd) < 0)
		return -errno;
	return 0;
}

static int
make_key(struct seal *s, struct err *e)
{
	cleanup_close int dir_fd = open(s->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint8_t key[SIV_CMAC_AES256_KEY_SIZE];
	int r = dir_fd < 0 ? -errno : 0;

	if (r == 0 && getrandom(key, sizeof key, 0) != sizeof key)
		r = -EIO;
	if (r == 0)
		r = write_key(dir_fd, key);
	if (r == 0) {
		siv_cmac_aes256_set_key(&s->ctx, key);
		s->ready = true;
	}
	explicit_bzero(key, sizeof key);
	return r < 0 ? err_set(e, r, "make %s/seal.key, which encrypts secrets", s->dir) : 0;
}

int
seal_close(struct seal *s, const char *about, const void *plain, size_t len, struct sealed *ret,
    struct err *e)
{
	const size_t text_len = SIV_DIGEST_SIZE + len;
	int r = s->ready ? 0 : make_key(s, e);
	uint8_t *bytes;

	if (r < 0)
		return r;
	bytes = mem_alloc(HEAD_BYTES + text_len);
	bytes[0] = FORMAT;
	if (getrandom(bytes + FORMAT_BYTES, NONCE_BYTES, 0) != NONCE_BYTES) {
		free(bytes);
		return err_set(e, -EIO, "encrypt %s: get random bytes", about);
	}
	siv_cmac_aes256_encrypt_message(&s->ctx, NONCE_BYTES, bytes + FORMAT_BYTES, strlen(about),
	    (const uint8_t *)about, text_len, bytes + HEAD_BYTES, plain);
	*ret = (struct sealed){ .bytes = bytes, .len = HEAD_BYTES + text_len };
	return 0;
}

int
seal_open(const struct seal *s, const char *about, const void *bytes, size_t len,
    uint8_t **ret_plain, size_t *ret_len)
{
	const uint8_t *at = bytes;
	uint8_t *plain;
	size_t plain_len;

	if (!s->ready || len < HEAD_BYTES + SIV_DIGEST_SIZE || at[0] != FORMAT)
		return -EBADMSG;
	plain_len = len - HEAD_BYTES - SIV_DIGEST_SIZE;
	plain = mem_alloc(plain_len + 1);
	if (!siv_cmac_aes256_decrypt_message(&s->ctx, NONCE_BYTES, at + FORMAT_BYTES, strlen(about),
		(const uint8_t *)about, plain_len, plain, at + HEAD_BYTES)) {
		seal_wipe(plain, plain_len);
		return -EBADMSG;
	}
	*ret_plain = plain;
	*ret_len = plain_len;
	return 0;
}

void
seal_wipe(void *plain, size_t len)
{
	if (plain)
		explicit_bzero(plain, len);
	free(plain);
}

void
sealed_done(struct sealed *sealed)
{
	free(sealed->bytes);
	*sealed = (struct sealed){ 0 };
}
