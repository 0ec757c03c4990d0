/* SPDX-License-Identifier: Apache-2.0 */
/* local_service.h: a registered service, as this server keeps it. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_SERVICE_H
#define DROVER_SUPERVISOR_SERVER_CLAIM_LOCAL_SERVICE_H

#include "supervisor/server/local_news.h"
#include "supervisor/service/service_table.h"

struct local_service {
	struct source_service base;
	struct local_news news; /* local_changes.c */
};

static inline struct local_service *
local_service_of(struct source_service *s)
{
	return (struct local_service *)(void *)s;
}

#endif
