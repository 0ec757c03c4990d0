/* SPDX-License-Identifier: Apache-2.0 */
/* ren.h: what template-renderer's files share. Runs in: template-renderer. */
#ifndef DROVER_TEMPLATE_RENDERER_REN_H
#define DROVER_TEMPLATE_RENDERER_REN_H

#include <jansson.h>

#include "common/worker_texts.h"
#include "template/template.h"

/* Renders a template, as the struct ren_render_req at arg says. Runs in a worker. */
worker_fn ren_render;

/* The values of a request as data for a template. They stay the caller's. */
struct ren_values {
	json_t *json;
	struct ren_memory *memory; /* of the answers */
	struct template_data data;
};
/* Returns -EINVAL with *e if a value has another type than it must have. */
int ren_values_read(struct ren_values *v, json_t *json, struct err *e);
void ren_values_done(struct ren_values *v);

#endif
