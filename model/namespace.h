/* SPDX-License-Identifier: Apache-2.0 */
/* namespace.h: a namespace of jobs and volumes. Runs in: supervisor. */
#ifndef DROVER_MODEL_NAMESPACE_H
#define DROVER_MODEL_NAMESPACE_H

#include "model/engine/field.h"

/* An empty list of enabled names permits all that are not disabled. */
struct namespace_capabilities {
	struct strings enabled_drivers, disabled_drivers;
	struct strings enabled_modes, disabled_modes; /* of group networks */
};

struct namespace
{
	char *name, *description;
	struct string_map meta;
	struct namespace_capabilities *capabilities; /* NULL: all are permitted */
	/* Claims of tokens of its tasks: of all, and of those whose identity lists them. */
	struct string_map required_claims, optional_claims;
	/* The embedded server has none of these: local_api_namespaces.c refuses them. */
	char *quota;
	json_t *node_pools, *vault, *consul;
	uint64_t create_index, modify_index;
};

MODEL_DECLARE(namespace_capabilities);
MODEL_DECLARE(namespace);

#endif
