// SPDX-License-Identifier: Apache-2.0
/* volume_row.c: the row of a volume. Runs in: supervisor. */
#include "supervisor/server/claim/volume_row.h"

#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/seal_texts.h"
#include "supervisor/core/store.h"
#include "supervisor/server/claim/claims.h"

/* The mount flags, which may have a password, an empty text, and the secrets. */
static void
put_secrets(struct seal_texts *texts, const void *obj)
{
	const struct csi_volume *vol = obj;
	const struct mount_options *options = vol->mount_options;

	if (vol->secrets.n == 0 && (!options || options->mount_flags.n == 0))
		return;
	for (size_t i = 0; options && i < options->mount_flags.n; i++)
		if (*options->mount_flags.v[i])
			seal_put_text(texts, options->mount_flags.v[i]);
	seal_put_text(texts, "");
	seal_put_map(texts, &vol->secrets);
}

static void
take_secrets(void *obj, const char *at, size_t left)
{
	struct csi_volume *vol = obj;
	const char *flag;

	while ((flag = seal_take_text(&at, &left)) && *flag) {
		if (!vol->mount_options)
			vol->mount_options = mount_options_new();
		strings_add(&vol->mount_options->mount_flags, flag);
	}
	seal_take_map(&at, &left, &vol->secrets);
}

/* Each entry of a context has the id of the claim's alloc before it. */
static void
put_contexts(struct seal_texts *texts, const void *vol)
{
	const struct csi_claim *c;

	for (size_t n = 0; (c = volume_nth_claim((struct csi_volume *)(uintptr_t)vol, n)); n++) {
		for (size_t i = 0; i < c->publish_context.n; i++) {
			seal_put_text(texts, c->alloc_id);
			seal_put_text(texts, c->publish_context.v[i].key);
			seal_put_text(texts, c->publish_context.v[i].value);
		}
	}
}

static void
take_contexts(void *vol, const char *at, size_t left)
{
	const char *alloc, *key, *value;
	struct csi_claim *c;

	while ((alloc = seal_take_text(&at, &left)) && (key = seal_take_text(&at, &left)) &&
	       (value = seal_take_text(&at, &left))) {
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

static int
seal_column(struct seal *seal, const struct csi_volume *vol, const char *column, seal_put_fn *put,
    struct sealed *ret, struct err *e)
{
	cleanup_free char *about = name_column(vol, column);

	return seal_close_texts(seal, about, put, vol, ret, e);
}

static bool
open_column(const struct seal *seal, struct csi_volume *vol, const char *column, const void *bytes,
    size_t len, seal_take_fn *take)
{
	cleanup_free char *about = name_column(vol, column);

	return len == 0 || seal_open_texts(seal, about, bytes, len, take, vol);
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
