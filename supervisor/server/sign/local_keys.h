/* SPDX-License-Identifier: Apache-2.0 */
/*
 * local_keys.h: the keys that sign the tokens of tasks. There is one active key for each algorithm
 * that was needed; it is made when it is needed first. A pair of RSA is made in steps between other
 * events of the work loop; until then the key before it stays the active one. Runs in: supervisor.
 *
 * A key that was replaced stays while an alloc that is older than its replacement has not ended,
 * and LOCAL_KEY_KEEP_NS at least. Secrets are sealed in state.db (core/seal.h).
 */
#ifndef DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_KEYS_H
#define DROVER_SUPERVISOR_SERVER_SIGN_LOCAL_KEYS_H

#include <sys/queue.h>

#include "common/duration.h"
#include "model/signing_key.h"
#include "supervisor/server/base/local.h"
#include "supervisor/server/base/local_map.h"
#include "supervisor/server/sign/sign_key.h"

/* As with the servers. */
#define LOCAL_KEY_LIFE_NS (720 * 3600 * NS_PER_S)
#define LOCAL_KEY_KEEP_NS (3600 * NS_PER_S)

struct local_signing_key {
	struct local_key key; /* its id */
	struct signing_key about;
	struct sign_key *pair;
	struct dirty row;
	bool gone; /* the row is being deleted; then this is freed */
};

void local_keys_init(struct local *l);
void local_keys_free(struct local *l);
int local_keys_load(struct local *l, struct err *e);

/* Returns the key of that id, or NULL. */
struct local_signing_key *local_keys_find(const struct local *l, const char *id);
/* Returns all keys, the newest first: an array of *ret_n that the caller frees. */
struct local_signing_key **local_keys_list(const struct local *l, size_t *ret_n);

/* Returns whether there is an active key. One of Ed25519 is made by local_keys_sign(). */
bool local_keys_ready(const struct local *l, enum sign_algorithm algorithm);
/* Returns a token with these claims, signed with the active key, which must be ready unless it is
 * one of Ed25519. The key is in state.db before anything that this turn changes is seen. The caller
 * frees it. */
char *local_keys_sign(struct local *l, enum sign_algorithm algorithm, const json_t *claims);

/* One who waits for a new key of RS256. made() is called once, in the turn that makes it the active
 * key. */
struct local_key_wait {
	LIST_ENTRY(local_key_wait) link;
	void (*made)(
	    struct local *l, struct local_key_wait *w, const struct local_signing_key *key);
};

/* Makes a key of RS256, durably, which replaces the active one. all: those of the other algorithms
 * are replaced in the same commit. Joins a key that is being made already. w: NULL, or whom to
 * tell; it stays the caller's. */
void local_keys_make(struct local *l, bool all, struct local_key_wait *w);
/* To be called only before made(). */
void local_key_wait_end(struct local_key_wait *w);
/* Deletes a key that is not active, durably: its tokens are no longer valid. */
void local_key_forget(struct local *l, struct local_signing_key *k);
/* Replaces keys that are older than LOCAL_KEY_LIFE_NS and deletes replaced keys that no token
 * needs: oldest_ns is when the oldest alloc that has not ended was made (INT64_MAX: there is none).
 */
void local_keys_age(struct local *l, int64_t oldest_ns);

#endif
