// SPDX-License-Identifier: Apache-2.0
/* local_api_keyring.c: the keys that sign tokens, over the API. Runs in: supervisor. */
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/server/api/local_api.h"
#include "supervisor/server/sign/local_keys.h"

void
local_api_list_keys(struct sup *sup, struct api_req *req)
{
	size_t n;
	cleanup_free struct local_signing_key **keys = local_keys_list(local_of_sup(sup), &n);
	struct text t = { 0 };

	text_append(&t, "[", 1);
	for (size_t i = 0; i < n; i++) {
		if (i > 0)
			text_append(&t, ",", 1);
		model_to_text(&signing_key_type, &keys[i]->about, api_model_flags(req), &t);
	}
	text_append(&t, "]", 1);
	api_reply_take(req, &t);
}

/* The public keys, with which anybody can verify tokens. */
void
local_api_get_jwks(struct sup *sup, struct api_req *req)
{
	size_t n;
	cleanup_free struct local_signing_key **keys = local_keys_list(local_of_sup(sup), &n);
	json_t *list = json_array();

	for (size_t i = 0; i < n; i++)
		(void)json_array_append_new(
		    list, sign_key_public(keys[i]->pair, keys[i]->about.id));
	api_reply_json(req, json_pack("{s:o}", "keys", list));
}

/* There is no address that others could trust as the issuer's. */
void
local_api_no_discovery(struct sup *sup, struct api_req *req)
{
	api_reply_error(req, 404, "OIDC Discovery endpoint disabled");
}

/* A request that waits for the new key. */
struct rotation {
	struct api_held held;
	struct local_key_wait wait;
};

static void
on_key_made(struct local *l, struct local_key_wait *w, const struct local_signing_key *key)
{
	struct rotation *r = container_of(w, struct rotation, wait);

	api_hold(r->held.req, NULL);
	api_reply_json(r->held.req,
	    json_pack("{s:o}", "Key", model_to_json(&signing_key_type, &key->about, 0)));
	free(r);
}

/* The keys are replaced all the same. */
static void
on_client_gone(struct api_held *held)
{
	struct rotation *r = container_of(held, struct rotation, held);

	local_key_wait_end(&r->wait);
	free(r);
}

void
local_api_rotate_keys(struct sup *sup, struct api_req *req)
{
	struct rotation *r;

	if (api_query(req, "publish_time")) {
		api_reply_error(
		    req, 400, "publish_time is not supported: a new key is used at once");
		return;
	}
	r = mem_new(struct rotation);
	*r = (struct rotation){ .held = { on_client_gone, req }, .wait.made = on_key_made };
	api_hold(req, &r->held);
	local_keys_make(local_of_sup(sup), true, &r->wait);
}

void
local_api_delete_key(struct sup *sup, struct api_req *req)
{
	struct local *l = local_of_sup(sup);
	struct local_signing_key *k = local_keys_find(l, api_param(req, 0));

	if (!k) {
		api_reply_error(req, 404, "there is no key \"%.40s\"", api_param(req, 0));
	} else if (k->about.state == SIGNING_KEY_ACTIVE) {
		api_reply_error(req, 400,
		    "key %s signs new tokens: rotate the keys, then it can be deleted",
		    k->about.id);
	} else {
		local_key_forget(l, k);
		api_reply_json(req, json_null());
	}
}
