// SPDX-License-Identifier: Apache-2.0
/* volume_row.c: the row of a volume. Runs in: supervisor. */
#include "supervisor/server/claim/volume_row.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/store.h"
#include "supervisor/server/claim/claims.h"

/* --- maps as bytes: each key and value with its NUL --- */

struct bytes {
	char *at;
	size_t len;
};

static void
put_text(struct bytes *b, const char *text)
{
	size_t size = strlen(str(text)) + 1;

	if (b->at)
		memcpy(b->at + b->len, str(text), size);
	b->len += size;
}

/* Takes the next text of *at, of which *left bytes exist; NULL if there is none. */
static const char *
take_text(const char **at, size_t *left)
{
	const char *text = *at;
	size_t size = strnlen(text, *left) + 1;

	if (size > *left)
		return NULL;
	*at += size;
	*left -= size;
	return text;
}

/* The mount flags, which may have a password, an empty text, and the secrets. */
static void
put_secrets(struct bytes *b, const struct csi_volume *vol)
{
	const struct mount_options *options = vol->mount_options;

	if (vol->secrets.n == 0 && (!options || options->mount_flags.n == 0))
		return;
	for (size_t i = 0; options && i < options->mount_flags.n; i++)
		if (*options->mount_flags.v[i])
			put_text(b, options->mount_flags.v[i]);
	put_text(b, "");
	for (size_t i = 0; i < vol->secrets.n; i++) {
		put_text(b, vol->secrets.v[i].key);
		put_text(b, vol->secrets.v[i].value);
	}
}

static void
take_secrets(struct csi_volume *vol, const char *at, size_t left)
{
	const char *key, *value;

	while ((value = take_text(&at, &left)) && *value) {
		if (!vol->mount_options)
			vol->mount_options = mount_options_new();
		strings_add(&vol->mount_options->mount_flags, value);
	}
	while ((key = take_text(&at, &left)) && (value = take_text(&at, &left)))
		string_map_append(&vol->secrets, key, value);
}

/* Each entry of a context has the id of the claim's alloc before it. */
static void
put_contexts(struct bytes *b, const struct csi_volume *vol)
{
	const struct csi_claim *c;

	for (size_t n = 0; (c = volume_nth_claim((struct csi_volume *)(uintptr_t)vol, n)); n++) {
		for (size_t i = 0; i < c->publish_context.n; i++) {
			put_text(b, c->alloc_id);
			put_text(b, c->publish_context.v[i].key);
			put_text(b, c->publish_context.v[i].value);
		}
	}
}

static void
take_contexts(struct csi_volume *vol, const char *at, size_t left)
{
	const char *alloc, *key, *value;
	struct csi_claim *c;

	while ((alloc = take_text(&at, &left)) && (key = take_text(&at, &left)) &&
	       (value = take_text(&at, &left))) {
		c = volume_held_claim(vol, alloc);
		if (c)
			string_map_append(&c->publish_context, key, value);
	}
}

/* --- columns --- */

static char *
name_column(const struct csi_volume *vol, const char *column)
{
	return mem_printf("volume %s of %s/%s", column, str(vol->namespace), str(vol->id));
}

/* Seals what put() writes; *ret stays empty if that is nothing. */
static int
seal_column(struct seal *seal, const struct csi_volume *vol, const char *column,
    void (*put)(struct bytes *b, const struct csi_volume *vol), struct sealed *ret, struct err *e)
{
	cleanup_free char *about = name_column(vol, column);
	struct bytes b = { 0 };
	size_t size;
	int r;

	put(&b, vol); /* counts */
	size = b.len;
	if (size == 0)
		return 0;
	b = (struct bytes){ .at = mem_alloc(size) };
	put(&b, vol);
	r = seal_close(seal, about, b.at, size, ret, e);
	seal_wipe(b.at, size);
	return r;
}

static bool
open_column(const struct seal *seal, struct csi_volume *vol, const char *column, const void *bytes,
    size_t len, void (*take)(struct csi_volume *vol, const char *at, size_t left))
{
	cleanup_free char *about = name_column(vol, column);
	uint8_t *plain = NULL;
	size_t plain_len = 0;

	if (len == 0)
		return true;
	if (seal_open(seal, about, bytes, len, &plain, &plain_len) < 0)
		return false;
	take(vol, (const char *)plain, plain_len);
	seal_wipe(plain, plain_len);
	return true;
}

/* --- rows --- */

int
volume_row_put(struct store *store, struct seal *seal, const struct csi_volume *vol,
    struct sealed *unread, struct err *e)
{
	struct sealed secrets = { 0 }, contexts = { 0 };
	struct csi_volume stored = *vol; /* shares all that it points to */
	struct text json = { 0 };
	int r;

	if (!vol->secrets_lost) {
		sealed_done(unread);
		stored.flags_sealed = vol->secrets.n == 0 && vol->mount_options &&
				      vol->mount_options->mount_flags.n > 0;
	}
	r = seal_column(seal, vol, "secrets", put_secrets, &secrets, e);
	if (r == 0)
		r = seal_column(seal, vol, "contexts", put_contexts, &contexts, e);
	if (r == 0) {
		const struct sealed *s = vol->secrets_lost ? unread : &secrets;

		model_to_text(&csi_volume_type, &stored, MODEL_COMPACT | MODEL_ROW, &json);
		r = STORE_EXEC(store, STMT_VOLUME_PUT, e, SV_TEXT(vol->namespace), SV_TEXT(vol->id),
		    SV_TEXT(json.text), SV_BLOB(s->bytes, s->len),
		    SV_BLOB(contexts.bytes, contexts.len));
	}
	sealed_done(&secrets);
	sealed_done(&contexts);
	text_done(&json);
	return r;
}

static bool
has_clear(const struct csi_volume *vol)
{
	const struct csi_claim *c;

	for (size_t n = 0; (c = volume_nth_claim((struct csi_volume *)(uintptr_t)vol, n)); n++)
		if (c->publish_context.n > 0)
			return true;
	for (size_t i = 0; i < vol->past_claims.n; i++)
		if (vol->past_claims.v[i].value.publish_context.n > 0)
			return true;
	return vol->secrets.n > 0 || (vol->mount_options && vol->mount_options->mount_flags.n > 0);
}

static void
attach_again(struct csi_volume *vol)
{
	struct csi_claim *c;

	for (size_t n = 0; (c = volume_nth_claim(vol, n)); n++)
		if (c->attach == CLAIM_ATTACHED)
			c->attach = CLAIM_ATTACHING;
}

int
volume_row_get(const struct store_row *row, const struct seal *seal, struct csi_volume *ret,
    struct sealed *ret_unread, bool *ret_clear, struct err *e)
{
	const char *json = store_col_text(row, 2);
	size_t len, contexts_len;
	const void *secrets, *contexts;
	int r = model_from_text(&csi_volume_type, json, strlen(json), ret, e);

	if (r < 0)
		return r;
	*ret_clear = has_clear(ret);
	secrets = store_col_blob(row, 3, &len);
	contexts = store_col_blob(row, 4, &contexts_len);
	if (!open_column(seal, ret, "contexts", contexts, contexts_len, take_contexts))
		attach_again(ret);
	if (!open_column(seal, ret, "secrets", secrets, len, take_secrets)) {
		ret->secrets_lost = true;
		*ret_unread = (struct sealed){ .bytes = mem_alloc(len), .len = len };
		memcpy(ret_unread->bytes, secrets, len);
	}
	return 0;
}
