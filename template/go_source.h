/* SPDX-License-Identifier: Apache-2.0 */
/* go_source.h: the types of what templates get from Nomad and Consul, and values of them. Runs in:
 * template-renderer. */
#ifndef DROVER_TEMPLATE_GO_SOURCE_H
#define DROVER_TEMPLATE_GO_SOURCE_H

#include "template/go_value.h"
#include "template/template.h"

extern const struct go_type go_type_var_items, go_type_var_item, go_type_var, go_type_var_meta,
    go_type_var_metas, go_type_service, go_type_services, go_type_service_stub,
    go_type_service_stubs, go_type_key_pairs, go_type_health_services, go_type_health_service,
    go_type_catalog_stubs, go_type_nodes, go_type_tags, go_type_scratch;

/* The items of a variable. */
struct go_value go_var_items(struct arena *a, const struct template_variable *v);
struct go_value go_var_meta(struct arena *a, const struct template_variable *v);
struct go_value go_service(struct arena *a, const struct template_service *s);
struct go_value go_service_stub(struct arena *a, const struct template_service *s);

#endif
