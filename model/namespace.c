// SPDX-License-Identifier: Apache-2.0
/* namespace.c: field table of namespaces. Runs in: supervisor. */
#include "model/namespace.h"

#include "model/engine/table.h"

#define S namespace_capabilities
static const struct field capability_fields[] = {
	F_STRINGS(enabled_drivers, "EnabledTaskDrivers"),
	F_STRINGS(disabled_drivers, "DisabledTaskDrivers"),
	F_STRINGS(enabled_modes, "EnabledNetworkModes"),
	F_STRINGS(disabled_modes, "DisabledNetworkModes"),
};
MODEL_TYPE(namespace_capabilities, capability_fields, .name = "capabilities");
#undef S

#define S namespace
static const struct field namespace_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(description, "Description"),
	F_STRING(quota, "Quota"),
	F_STRING_MAP(meta, "Meta"),
	F_POINTER(capabilities, "Capabilities", namespace_capabilities),
	F_STRING_MAP(required_claims, "RequiredExtraClaims"),
	F_STRING_MAP(optional_claims, "OptionalExtraClaims"),
	F_JSON(node_pools, "NodePoolConfiguration"),
	F_JSON(vault, "VaultConfiguration"),
	F_JSON(consul, "ConsulConfiguration"),
	F_UINT(create_index, "CreateIndex"),
	F_UINT(modify_index, "ModifyIndex"),
};
MODEL_TYPE(namespace, namespace_fields, .name = "namespace",
    .title = 1 + offsetof(struct namespace, name));
#undef S
