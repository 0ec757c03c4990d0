// SPDX-License-Identifier: Apache-2.0
/* plugin_caps.c: all capabilities that an instance of a CSI plugin has reported. Runs in:
 * supervisor. */
#include "supervisor/volume/plugin_caps.h"

#include "proto/csi.pb-c.h"

#define NUMBERS 32

static const ProtobufCEnumDescriptor *const names[] = {
	[PLUGIN_CAPS] = &csi__v1__plugin_capability__service__type__descriptor,
	[PLUGIN_EXPANSION] = &csi__v1__plugin_capability__volume_expansion__type__descriptor,
	[PLUGIN_CONTROLLER_CAPS] = &csi__v1__controller_service_capability__rpc__type__descriptor,
	[PLUGIN_NODE_CAPS] = &csi__v1__node_service_capability__rpc__type__descriptor,
	[PLUGIN_GROUP_CAPS] = &csi__v1__group_controller_service_capability__rpc__type__descriptor,
};

void
plugin_caps_add(struct plugin_caps *caps, enum plugin_service service, int number)
{
	if (number > 0 && number < NUMBERS)
		caps->bits[service] |= UINT32_C(1) << number;
}

bool
plugin_caps_has(const struct plugin_caps *caps, enum plugin_service service, int number)
{
	return (caps->bits[service] & UINT32_C(1) << number) != 0;
}

const char *
plugin_caps_name(enum plugin_service service, int number)
{
	const ProtobufCEnumValue *v = protobuf_c_enum_descriptor_get_value(names[service], number);

	return v ? v->name : "UNKNOWN";
}

void
plugin_caps_list(const struct plugin_caps *caps, enum plugin_service service, struct strings *ret)
{
	for (int n = 1; n < NUMBERS; n++)
		if (plugin_caps_has(caps, service, n))
			strings_add(ret, plugin_caps_name(service, n));
}
