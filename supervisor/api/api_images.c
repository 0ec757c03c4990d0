// SPDX-License-Identifier: Apache-2.0
/* api_images.c: /v1/agent/images, the container images of this node. Runs in: supervisor. */
#include <errno.h>
#include <string.h>

#include "common/image_ref.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/api/api_routes.h"
#include "supervisor/http/api.h"
#include "supervisor/image/image_gc.h"
#include "supervisor/image/images.h"

void
api_list_images(struct sup *sup, struct api_req *req)
{
	api_reply_json(req, images_show(sup));
}

/* Reads {"Name": "redis:7", "Force": false}. */
static int
read_request(struct api_req *req, struct image_request *ret, struct err *e)
{
	const json_t *body = api_body_object(req, e), *force;

	if (!body)
		return e->code;
	ret->text = json_string_value(json_object_get(body, "Name"));
	force = json_object_get(body, "Force");
	if (!ret->text || (force && !json_is_boolean(force)))
		return err_say(e, -EINVAL,
		    "the body must be {\"Name\": \"image\"}, and may have \"Force\": true");
	ret->force = json_is_true(force);
	ret->keep = true;
	return 0;
}

/* Answers when the pull has begun; what becomes of it is in the list. */
void
api_pull_image(struct sup *sup, struct api_req *req)
{
	struct image_request request = { 0 };
	char name[IMAGE_REF_SIZE];
	struct image_ref ref;
	struct err e = { 0 };

	if (read_request(req, &request, &e) < 0 || image_ref_parse(request.text, &ref, &e) < 0 ||
	    !image_want(sup, &request, NULL, NULL, &e)) {
		api_reply_error(req, 400, "%s", e.msg);
		return;
	}
	image_ref_format(&ref, name);
	api_reply_json(req, json_pack("{s:s}", "Name", name));
}

void
api_remove_image(struct sup *sup, struct api_req *req)
{
	const char *text = api_query(req, "name");
	const char *force = api_query(req, "force");
	char name[IMAGE_REF_SIZE];
	const struct image *image;
	struct image_ref ref;
	struct err e = { 0 };

	image = text ? image_find(sup, text) : NULL; /* as the list has it: that of an archive */
	if (!image && (!text || image_ref_parse(text, &ref, &e) < 0)) {
		api_reply_error(
		    req, 400, "%s", text ? e.msg : "the query must have the image's name");
		return;
	}
	if (image)
		(void)strcpy(name, image->name);
	else {
		image_ref_format(&ref, name);
		image = image_find(sup, name);
	}
	if (image && image_has_user(sup, image) && strcmp(str(force), "true") != 0)
		api_reply_error(req, 409,
		    "a task on this node uses image %s, and would need the registry for its next "
		    "start: stop the task first, or remove the image with force (-force)",
		    name);
	else if (image_remove(sup, name) < 0)
		api_reply_error(req, 404, "image %s is not on this node", name);
	else
		api_reply_json(req, json_object());
}
