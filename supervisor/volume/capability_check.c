// SPDX-License-Identifier: Apache-2.0
/* capability_check.c: compares the capabilities that a plugin confirms with the requested ones.
 * Runs in: supervisor. */
#include "supervisor/volume/capability_check.h"

#include <errno.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/volume/call_args.h"

typedef Csi__V1__VolumeCapability capability;

static bool
has_flag(const capability *c, const char *flag)
{
	for (size_t i = 0; i < c->mount->n_mount_flags; i++)
		if (strcmp(c->mount->mount_flags[i], flag) == 0)
			return true;
	return false;
}

static bool
same_mount(const capability *asked, const capability *confirmed)
{
	if (strcmp(asked->mount->fs_type, confirmed->mount->fs_type) != 0)
		return false;
	for (size_t i = 0; i < asked->mount->n_mount_flags; i++)
		if (!has_flag(confirmed, asked->mount->mount_flags[i]))
			return false;
	return true;
}

/* A confirmed access mode UNKNOWN stands for all, and so does an access type that is not set: there
 * are plugins that confirm only the mode. */
static bool
covers(const capability *confirmed, const capability *asked)
{
	Csi__V1__VolumeCapability__AccessMode__Mode mode =
	    confirmed->access_mode ? confirmed->access_mode->mode
				   : CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN;

	if (mode != CSI__V1__VOLUME_CAPABILITY__ACCESS_MODE__MODE__UNKNOWN &&
	    mode != asked->access_mode->mode)
		return false;
	if (confirmed->access_type_case == CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE__NOT_SET)
		return true;
	return confirmed->access_type_case == asked->access_type_case &&
	       (asked->access_type_case != CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT ||
		   same_mount(asked, confirmed));
}

int
capability_check(const struct csi_volume *asked,
    const Csi__V1__ValidateVolumeCapabilitiesResponse *rep, struct err *e)
{
	const Csi__V1__ValidateVolumeCapabilitiesResponse__Confirmed *c = rep->confirmed;
	cleanup_call_args struct call_args args = { 0 };
	Csi__V1__VolumeCapability **caps;
	size_t n, k;

	if (!c && !*rep->message)
		return 0;
	if (!c)
		return err_say(
		    e, -EINVAL, "the plugin does not support these capabilities: %s", rep->message);
	n = call_args_capabilities(&args, asked, &caps);
	for (size_t i = 0; i < n; i++) {
		for (k = 0; k < c->n_volume_capabilities; k++)
			if (covers(c->volume_capabilities[k], caps[i]))
				break;
		if (k == c->n_volume_capabilities)
			return err_say(e, -EINVAL,
			    "the plugin does not confirm %s with %s and these mount options%s%s",
			    csi_access_names[asked->requested_capabilities.v[i].access_mode],
			    csi_attachment_names[asked->requested_capabilities.v[i]
						     .attachment_mode],
			    *rep->message ? ": " : "", rep->message);
	}
	return 0;
}
