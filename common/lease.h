/* SPDX-License-Identifier: Apache-2.0 */
/*
 * lease.h: the page <rt>/lease, by which stop_after_client_disconnect works with every process but
 * the executor dead. Made once per boot by the launcher, written by heartbeat alone, read by
 * executors with pread(2).
 */
#ifndef DROVER_COMMON_LEASE_H
#define DROVER_COMMON_LEASE_H

#include <stdint.h>

#include "common/id.h"

#define LEASE_MAGIC    0x657361656c766472ull
#define LEASE_GRACE_MS 50000 /* how long a node may be without its first beat, as with servers */

/* Little-endian, 4096 bytes on disk, the rest zero. Times are CLOCK_BOOTTIME in nanoseconds. */
struct lease_page {
	uint64_t magic;
	char boot_id[40]; /* 36 characters, NULs */
	uint64_t started; /* when the page was made: never changes */
	uint64_t last_ok; /* when the last answered beat was sent; 0: never */
};

uint64_t boottime_ns(void);
/*
 * When does an alloc with this limit have to stop? last_ok ahead of now counts as now. limit_ms
 * must not be 0, which means that there is no lease.
 */
uint64_t lease_deadline_ns(const struct lease_page *page, uint64_t limit_ms, uint64_t now_ns);
/* 0; -EIO for a short read, -EBADMSG for a page that is none or of another boot. Untouched *ret on
 * failure. */
int lease_read(int fd, struct lease_page *ret);
/* The page, to be written, for as long as the process lives; NULL with errno. */
struct lease_page *lease_map(int fd);
/* Stores last_ok by one write of 8 bytes, which a reader sees whole. */
void lease_set_ok(struct lease_page *page, uint64_t last_ok);

#endif
