// SPDX-License-Identifier: Apache-2.0
/* local_keys.c: the keys that sign the tokens of tasks. Runs in: supervisor. */
#include "supervisor/server/sign/local_keys.h"

#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/store.h"
#include "supervisor/server/feed/local_changes.h"

struct local_keys {
	struct local_map map;
	struct local_signing_key *active[SIGN_ALGORITHMS]; /* NULL: none was needed */
	struct sign_maker *maker;                          /* NULL: no key is being made */
	bool all;               /* the new key replaces those of the other algorithms too */
	sd_event_source *steps; /* of the maker */
	LIST_HEAD(, local_key_wait) waits;
};

static struct local_signing_key *
key_of(struct local_key *key)
{
	return key ? container_of(key, struct local_signing_key, key) : NULL;
}

static int
algorithm_of(const struct signing_key *about)
{
	for (int i = 0; i < SIGN_ALGORITHMS; i++)
		if (str_eq(about->algorithm, sign_algorithm_names[i]))
			return i;
	return -1;
}

/* --- rows --- */

/* The name under which the secret is sealed. */
static char *
name_secret(const char *id)
{
	return mem_printf("secret of signing key %s", id);
}

static int
put_row(struct sup *sup, const struct local_signing_key *k, struct err *e)
{
	cleanup_free char *about = name_secret(k->about.id);
	struct sealed sealed = { 0 };
	struct text json = { 0 };
	uint8_t *secret;
	size_t len;
	int r;

	sign_key_secret(k->pair, &secret, &len);
	r = seal_close(sup->seal, about, secret, len, &sealed, e);
	seal_wipe(secret, len);
	if (r == 0) {
		model_to_text(&signing_key_type, &k->about, MODEL_COMPACT, &json);
		r = STORE_EXEC(sup->store, STMT_SIGNING_KEY_PUT, e, SV_TEXT(k->about.id),
		    SV_TEXT(json.text), SV_BLOB(sealed.bytes, sealed.len));
	}
	sealed_done(&sealed);
	text_done(&json);
	return r;
}

static int
write_key(struct sup *sup, struct dirty *d, struct err *e)
{
	struct local_signing_key *k = container_of(d, struct local_signing_key, row);

	return k->gone ? STORE_EXEC(sup->store, STMT_SIGNING_KEY_DELETE, e, SV_TEXT(k->about.id))
		       : put_row(sup, k, e);
}

static void
free_key(struct local_signing_key *k)
{
	sign_key_free(k->pair);
	signing_key_done(&k->about);
	free(k);
}

static void
on_key_written(struct sup *sup, struct dirty *d)
{
	struct local_signing_key *k = container_of(d, struct local_signing_key, row);

	(void)sup;
	if (k->gone)
		free_key(k);
}

static void
save_key(struct local *l, struct local_signing_key *k)
{
	k->about.modify_index = local_index_next(l);
	local_changes_record(l, LOCAL_SIGNING_KEYS, k->about.modify_index);
	turn_write(l->base.sup, &k->row);
	turn_durable(l->base.sup);
}

/* Takes over *about and pair. */
static struct local_signing_key *
add_key(struct local *l, struct signing_key *about, struct sign_key *pair)
{
	struct local_signing_key *k = mem_new(struct local_signing_key);

	k->row.write = write_key;
	k->row.point = CRASH_ROW_SIGNING_KEY;
	k->row.written = on_key_written;
	k->about = *about;
	k->pair = pair;
	signing_key_init(about);
	local_map_add(&l->keys->map, &k->key, k->about.id);
	return k;
}

static void
end_key(struct local_signing_key *k)
{
	k->about.state = SIGNING_KEY_INACTIVE;
	k->about.inactive_time = clock_real_ns();
}

static int
load_key(void *arg, const struct store_row *row, struct err *e)
{
	struct local *l = arg;
	cleanup_done(signing_key) struct signing_key about;
	cleanup_free char *name = name_secret(store_col_text(row, 0));
	const char *json = store_col_text(row, 1);
	struct local_signing_key **active, *k;
	struct sign_key *pair = NULL;
	struct err why = { 0 };
	uint8_t *secret = NULL;
	size_t len, sealed_len;
	const void *sealed = store_col_blob(row, 2, &sealed_len);

	(void)e;
	signing_key_init(&about);
	if (model_from_text(&signing_key_type, json, strlen(json), &about, &why) == 0 &&
	    algorithm_of(&about) >= 0 &&
	    seal_open(l->base.sup->seal, name, sealed, sealed_len, &secret, &len) == 0) {
		pair = sign_key_from_secret(algorithm_of(&about), secret, len);
		seal_wipe(secret, len);
	}
	if (!pair) {
		journal_error(JOURNAL_STATE, NULL,
		    "state.db: signing key %s cannot be used, so the tokens that it signed are not "
		    "valid any more: %s",
		    store_col_text(row, 0), *why.msg ? why.msg : "it was sealed with another key");
		return 0;
	}
	active = &l->keys->active[algorithm_of(&about)];
	k = add_key(l, &about, pair);
	if (k->about.state != SIGNING_KEY_ACTIVE)
		return 0;
	/* There are two if seal.key was lost, another key was made, and seal.key came back. */
	if (*active)
		end_key(k->about.create_time < (*active)->about.create_time ? k : *active);
	if (k->about.state == SIGNING_KEY_ACTIVE)
		*active = k;
	return 0;
}

int
local_keys_load(struct local *l, struct err *e)
{
	return store_each(l->base.sup->store, STMT_SIGNING_KEY_ALL, NULL, 0, load_key, l, e);
}

/* --- their life --- */

struct local_signing_key *
local_keys_find(const struct local *l, const char *id)
{
	return key_of(local_map_find(&l->keys->map, id));
}

static int
compare_age(const void *a, const void *b)
{
	const struct local_signing_key *const *x = a, *const *y = b;
	int64_t s = (*x)->about.create_time, t = (*y)->about.create_time;

	return s != t ? (s < t) - (s > t) : strcmp((*x)->about.id, (*y)->about.id);
}

struct local_signing_key **
local_keys_list(const struct local *l, size_t *ret_n)
{
	cleanup_free struct local_key **keys = local_map_sorted(&l->keys->map, ret_n);
	struct local_signing_key **list = mem_zeroed(*ret_n + 1, sizeof *list);

	for (size_t i = 0; i < *ret_n; i++)
		list[i] = key_of(keys[i]);
	qsort(list, *ret_n, sizeof *list, compare_age);
	return list;
}

static struct local_signing_key *
make_key(struct local *l, enum sign_algorithm algorithm, struct sign_key *pair)
{
	struct signing_key about;
	struct local_signing_key *k;
	struct id id = id_random_uuid();
	char text[ID_UUID_SIZE];

	id_to_uuid(&id, text);
	signing_key_init(&about);
	str_set(&about.id, text);
	str_set(&about.algorithm, sign_algorithm_names[algorithm]);
	about.state = SIGNING_KEY_ACTIVE;
	about.create_time = clock_real_ns();
	k = add_key(l, &about, pair);
	save_key(l, k);
	k->about.create_index = k->about.modify_index;
	l->keys->active[algorithm] = k;
	return k;
}

static struct local_signing_key *
replace_key(struct local *l, enum sign_algorithm algorithm, struct sign_key *pair)
{
	struct local_signing_key *old = l->keys->active[algorithm];

	if (old) {
		end_key(old);
		save_key(l, old);
	}
	return make_key(l, algorithm, pair);
}

bool
local_keys_ready(const struct local *l, enum sign_algorithm algorithm)
{
	return l->keys->active[algorithm] != NULL;
}

char *
local_keys_sign(struct local *l, enum sign_algorithm algorithm, const json_t *claims)
{
	struct local_signing_key *k = l->keys->active[algorithm];

	if (!k)
		k = make_key(l, algorithm, sign_key_new());
	return sign_key_token(k->pair, k->about.id, claims);
}

static void
take_pair(struct local *l, struct sign_key *pair)
{
	const struct local_signing_key *k = replace_key(l, SIGN_RS256, pair);
	struct local_keys *keys = l->keys;
	struct local_key_wait *w;

	if (keys->all && keys->active[SIGN_EDDSA])
		(void)replace_key(l, SIGN_EDDSA, sign_key_new());
	sign_maker_free(keys->maker);
	keys->maker = NULL;
	keys->all = false;
	while ((w = LIST_FIRST(&keys->waits))) {
		LIST_REMOVE(w, link);
		w->made(l, w, k);
	}
}

/* One step at a time, and after all other events: so nobody waits for a key of somebody else. */
static int
on_step(sd_event_source *source, void *arg)
{
	struct local *l = arg;
	struct sign_key *pair = sign_maker_step(l->keys->maker);

	if (pair) {
		(void)sd_event_source_set_enabled(source, SD_EVENT_OFF);
		take_pair(l, pair);
	}
	return 0;
}

void
local_keys_make(struct local *l, bool all, struct local_key_wait *w)
{
	struct local_keys *keys = l->keys;

	keys->all |= all;
	if (w)
		LIST_INSERT_HEAD(&keys->waits, w, link);
	if (keys->maker)
		return;
	keys->maker = sign_maker_new();
	(void)sd_event_source_set_enabled(keys->steps, SD_EVENT_ON);
}

void
local_key_wait_end(struct local_key_wait *w)
{
	LIST_REMOVE(w, link);
}

void
local_key_forget(struct local *l, struct local_signing_key *k)
{
	local_map_remove(&l->keys->map, &k->key);
	k->gone = true;
	save_key(l, k);
}

void
local_keys_age(struct local *l, int64_t oldest_ns)
{
	int64_t now = clock_real_ns();
	size_t n;
	cleanup_free struct local_signing_key **keys = local_keys_list(l, &n);

	for (size_t i = 0; i < n; i++) {
		const struct signing_key *about = &keys[i]->about;

		if (keys[i] == l->keys->active[algorithm_of(about)]) {
			if (now - about->create_time <= LOCAL_KEY_LIFE_NS)
				continue;
			if (algorithm_of(about) == SIGN_RS256)
				local_keys_make(l, false, NULL);
			else
				(void)replace_key(l, SIGN_EDDSA, sign_key_new());
		} else if (about->inactive_time < oldest_ns &&
			   now - about->inactive_time > LOCAL_KEY_KEEP_NS) {
			local_key_forget(l, keys[i]);
		}
	}
}

/* --- init --- */

void
local_keys_init(struct local *l)
{
	struct local_keys *keys = l->keys = mem_new(struct local_keys);

	LIST_INIT(&keys->waits);
	if (sd_event_add_defer(l->base.sup->event, &keys->steps, on_step, l) < 0)
		mem_exhausted();
	(void)sd_event_source_set_priority(keys->steps, SD_EVENT_PRIORITY_IDLE);
	(void)sd_event_source_set_enabled(keys->steps, SD_EVENT_OFF);
}

static void
drop_key(struct local *l, struct local_key *key)
{
	turn_forget_write(l->base.sup, &key_of(key)->row);
	free_key(key_of(key));
}

void
local_keys_free(struct local *l)
{
	sign_maker_free(l->keys->maker);
	(void)sd_event_source_unref(l->keys->steps);
	local_map_done(&l->keys->map, l, drop_key);
	free(l->keys);
}
