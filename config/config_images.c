// SPDX-License-Identifier: Apache-2.0
/* config_images.c: how container images are fetched and removed: plugin "docker" { config { auth
 * { … } gc { … } … } }.
 * Runs in: the launcher's configuration child, cli. */
#include <string.h>

#include "config/config_reader.h"

#define IDLE_MAX_MS ((uint64_t)24 * 3600 * 1000)

static int
read_auth_file(struct config_reader *c, const struct hcl_node *node)
{
	return config_read_file(c, node, FILE_IMAGE_AUTH);
}

/* It becomes a part of a program's name. */
static int
read_helper(struct config_reader *c, const struct hcl_node *node)
{
	static const char allowed[] =
	    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
	char *helper = c->config->images.auth_helper;
	int r = config_get_text(c, node, node->key, helper, IMAGE_HELPER_SIZE);

	if (r == 0 && helper[strspn(helper, allowed)])
		return config_fail(c, node->at,
		    "helper: expected \"NAME\" of a program docker-credential-NAME, found "
		    "\"%.64s\"",
		    helper);
	return r;
}

int
config_read_pull_idle(struct config_reader *c, const struct hcl_node *node)
{
	int r = config_get_duration(c, node, 1000, &c->config->images.idle_ms);

	if (r == 0 && c->config->images.idle_ms > IDLE_MAX_MS)
		return config_fail(c, node->at, "%s: expected at most 24h", node->key);
	return r;
}

static int
read_gc_delay(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 0, &c->config->images.gc_delay_ms);
}

const struct config_attr config_image_gc_attrs[] = {
	BOOL("image", images.gc),
	CALL("image_delay", read_gc_delay),
	UNUSED_AS("container", "has no effect: what a container wrote is removed with its task"),
	UNUSED_AS("dangling_containers", "has no effect: there are none; see `drover leaks`"),
	{ 0 },
};

const struct config_attr config_image_auth_attrs[] = {
	CALL("config", read_auth_file),
	CALL("helper", read_helper),
	{ 0 },
};
