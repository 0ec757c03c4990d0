// SPDX-License-Identifier: Apache-2.0
/* plugin_retry.c: decides when a call to a CSI plugin is repeated. Runs in: supervisor. */
#include "supervisor/volume/plugin_retry.h"

#include <stddef.h>

/* Returns the wait before the try that follows so many. */
static uint64_t
backoff_usec(unsigned tries)
{
	uint64_t usec = PLUGIN_BACKOFF_USEC;

	while (--tries > 0 && usec < PLUGIN_BACKOFF_MAX_USEC)
		usec *= 2;
	return usec < PLUGIN_BACKOFF_MAX_USEC ? usec : PLUGIN_BACKOFF_MAX_USEC;
}

uint64_t
plugin_retry_usec(const struct plugin_try_facts *f)
{
	if (f->verdict == CSI_RETRY)
		return f->failed < (f->once ? PLUGIN_TRIES_ONCE : PLUGIN_TRIES_MAX)
			   ? backoff_usec(f->failed)
			   : 0;
	if (f->verdict == CSI_PENDING && !f->once)
		return f->pending_usec < PLUGIN_PENDING_TIMEOUTS * f->timeout_usec
			   ? backoff_usec(f->pending)
			   : 0;
	return 0;
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
