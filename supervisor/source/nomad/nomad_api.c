// SPDX-License-Identifier: Apache-2.0
/* nomad_api.c: paths of the API that only servers can answer. Runs in: supervisor. */
#include "supervisor/api/api.h"
#include "supervisor/source/nomad/nomad.h"

const struct api_route nomad_api_routes[] = {
	{ 0 },
};
