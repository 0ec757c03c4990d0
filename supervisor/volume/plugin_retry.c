// SPDX-License-Identifier: Apache-2.0
/* plugin_retry.c: decides when a call to a CSI plugin is repeated. Runs in: supervisor. */
#include "supervisor/volume/plugin_retry.h"

#include <stddef.h>

enum plugin_retry
plugin_retry_lost(unsigned lost, bool instance)
{
	if (lost >= PLUGIN_TRIES_MAX)
		return PLUGIN_RETRY_NO;
	return instance ? PLUGIN_RETRY_NOW : PLUGIN_RETRY_LATER;
}

const char *
plugin_wait_failure(const struct plugin_wait_facts *f)
{
	if (f->lost >= PLUGIN_TRIES_MAX)
		return "the plugin's task ended during the call, and again when it was repeated";
	if (f->waited_usec >= PLUGIN_WAIT_USEC)
		return "no allocation of it on this node answered for 60 s";
	if (f->waited_usec < PLUGIN_GRACE_USEC || f->wanted)
		return NULL;
	return f->lost ? "the plugin's task ended during the call and is not started again"
		       : "no allocation of it runs or will run on this node";
}
