// SPDX-License-Identifier: Apache-2.0
/* token_record.c: the tokens of an alloc's tasks in its row of state.db, encrypted. Runs in:
 * supervisor. */
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"
#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_record.h"
#include "supervisor/alloc/alloc_token.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/seal.h"
#include "supervisor/core/sup_tidy.h"

static char *
name_column(const struct token *t)
{
	return mem_printf("token %s of %s/%s", str(t->spec->name), t->tr->ar->sa->a.id, t->task);
}

/* Returns the encrypted token as base64; NULL: it cannot be encrypted. */
static char *
seal_token(const struct token *t)
{
	cleanup_free char *about = name_column(t);
	struct sealed sealed = { 0 };
	struct err e = { 0 };
	char *text;

	if (seal_close(t->tr->ar->sup->seal, about, t->jwt, strlen(t->jwt), &sealed, &e) < 0) {
		journal_warn(JOURNAL_TASK, ABOUT_TASK(t->tr->ar->sa, t->task),
		    "allocation %.8s task %s: after a restart of the agent its token %s is "
		    "requested again, because it cannot be encrypted: %s",
		    t->tr->ar->sa->a.id, t->task, str(t->spec->name), e.msg);
		return NULL;
	}
	text = mem_alloc(BASE64_SIZE(sealed.len));
	(void)base64_encode(sealed.bytes, sealed.len, text);
	sealed_done(&sealed);
	return text;
}

static void
open_token(struct token *t, const char *text)
{
	cleanup_free char *about = name_column(t);
	size_t len = strlen(text), plain_len = 0;
	cleanup_free uint8_t *bytes = mem_alloc(len + 1);
	uint8_t *plain = NULL;

	if (base64_decode(text, bytes, &len) < 0 ||
	    seal_open(t->tr->ar->sup->seal, about, bytes, len, &plain, &plain_len) < 0)
		return;
	free(t->jwt);
	t->jwt = mem_strndup((const char *)plain, plain_len);
	seal_wipe(plain, plain_len);
}

void
alloc_identities_save(const struct alloc_identities *ids, struct alloc_record *rec)
{
	for (size_t i = 0; ids && i < ids->n; i++) {
		const struct token *t = &ids->v[i];
		char *sealed = t->jwt ? seal_token(t) : NULL;
		struct token_record *one;

		if (!sealed)
			continue;
		one = list_add(token_record, &rec->identities);
		str_set(&one->task, t->task);
		str_set(&one->name, t->spec->name);
		one->sealed = sealed;
		one->signed_ns = t->signed_ns;
		one->life_ns = t->life_ns;
		one->given = t->given;
	}
}

/* A token that an earlier version has not encrypted is encrypted soon, and leaves the file. */
static void
take_token(struct token *t, const struct token_record *one)
{
	if (one->token) {
		str_set(&t->jwt, one->token);
		alloc_save_soon(t->tr->ar);
		tidy_secret(t->tr->ar->sup);
	} else {
		open_token(t, str(one->sealed));
	}
}

void
token_restore(struct token *t, const struct alloc_record *kept)
{
	for (size_t i = 0; i < kept->identities.n; i++) {
		const struct token_record *one = &kept->identities.v[i];

		if (!str_eq(one->task, t->task) || !str_eq(one->name, t->spec->name))
			continue;
		take_token(t, one);
		if (!t->jwt)
			continue;
		t->signed_ns = one->signed_ns;
		t->life_ns = one->life_ns;
		t->given = one->given;
		token_set_times(t, clock_real_ns() - t->signed_ns);
	}
}
