// SPDX-License-Identifier: Apache-2.0
/* volume_place.c: the directory of a volume, from its path. Runs in: supervisor. */
#include "supervisor/volume/volume_place.h"

#include <string.h>

#include "common/id.h"
#include "common/mountinfo.h"
#include "model/task.h"

/* Takes the next component off *at; false if there is none, or if it does not fit. */
static bool
next_part(const char **at, char *buf, size_t size)
{
	size_t n = strcspn(*at, "/");

	if (n == 0 || n >= size)
		return false;
	memcpy(buf, *at, n);
	buf[n] = '\0';
	*at += n + ((*at)[n] == '/');
	return true;
}

static bool
kind_from_name(const char *name, struct volume_place *place)
{
	for (int k = CSI_PLUGIN_CONTROLLER; k <= CSI_PLUGIN_MONOLITH; k++)
		if (strcmp(csi_plugin_kind_names[k], name) == 0) {
			place->kind = (enum plugin_kind)k;
			return true;
		}
	return false;
}

bool
volume_place_parse(const char *path, struct volume_place *ret, bool *ret_staging)
{
	const char *at = mountinfo_below(path, "csi");
	char part[ID_UUID_SIZE];

	*ret = (struct volume_place){ 0 };
	if (!at || !next_part(&at, part, sizeof part) || !kind_from_name(part, ret) ||
	    !next_part(&at, ret->plugin, sizeof ret->plugin) || !next_part(&at, part, sizeof part))
		return false;
	*ret_staging = strcmp(part, "staging") == 0;
	if (!*ret_staging &&
	    (strcmp(part, "per-alloc") != 0 || !next_part(&at, part, sizeof part) ||
		!id_from_uuid(part, &ret->alloc)))
		return false;
	return next_part(&at, ret->volume, sizeof ret->volume) &&
	       next_part(&at, ret->usage, sizeof ret->usage) && *at == '\0';
}
