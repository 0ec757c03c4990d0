/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h: the page <rt>/lease, with which stop_after_client_disconnect works even if every process
 * but the executor is dead. The launcher makes it once per boot, only heartbeat writes it, and
 * executors read it with pread(2). Runs in: launcher, heartbeat, supervisor, executor.
 */
#ifndef DROVER_COMMON_LEASE_H
#define DROVER_COMMON_LEASE_H

#include <stdint.h>

#include "common/id.h"

#define LEASE_MAGIC    0x657361656c766472ull
#define LEASE_GRACE_MS 50000 /* time for a node's first beat, as with Nomad's servers */

/* Little-endian, 4096 bytes on disk, the rest zero. Times are CLOCK_BOOTTIME in nanoseconds. */
struct lease_page {
	uint64_t magic;
	char boot_id[40]; /* 36 characters, the rest NUL */
	uint64_t started; /* when the page was made; never changes */
	uint64_t last_ok; /* when the last answered beat was sent; 0 if there was none */
};

/*
 * Returns when an alloc with this limit has to stop. A last_ok in the future counts as now.
 * limit_ms must not be 0, which means that there is no lease.
 */
uint64_t lease_deadline_ns(const struct lease_page *page, uint64_t limit_ms, uint64_t now_ns);
/* Returns 0, -EIO for a short read, or -EBADMSG for a page that is invalid or of another boot. *ret
 * is untouched on failure. */
int lease_read(int fd, struct lease_page *ret);
/* Maps the page for writing, for as long as the process lives. Returns NULL with errno on
 * failure. */
struct lease_page *lease_map(int fd);
/* Stores last_ok with one write of 8 bytes, which a reader sees as a whole. */
void lease_set_ok(struct lease_page *page, uint64_t last_ok);

#endif
