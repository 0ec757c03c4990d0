// SPDX-License-Identifier: Apache-2.0
/* nomad_requests.c: what servers ask of this node. Runs in: supervisor. */
#include "supervisor/source/nomad/nomad.h"

const struct link_method nomad_methods[] = {
	{ 0 },
};
