/* SPDX-License-Identifier: Apache-2.0 */
/* template_value.h: variables and services in the form in which template-renderer takes them
 * (ren_render_req in proto/ipc_records.def). Each function returns a new object, or list sorted as
 * templates see it. Runs in: supervisor. */
#ifndef DROVER_MODEL_TEMPLATE_VALUE_H
#define DROVER_MODEL_TEMPLATE_VALUE_H

#include <jansson.h>

#include "model/service.h"
#include "model/variable.h"

/* items: with its items, which lists do not show. */
json_t *template_value_variable(const struct variable *var, bool items);
/* One instance of a service. */
json_t *template_value_service(const struct service_registration *reg);
/* The name of a service, and the tags of all its instances. */
json_t *template_value_service_name(const char *name, const struct strings *tags);

#endif
