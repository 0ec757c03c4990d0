/* SPDX-License-Identifier: Apache-2.0 */
/* statsd.h: sends the metrics over UDP to telemetry { statsd_address }. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_METRICS_STATSD_H
#define DROVER_SUPERVISOR_METRICS_STATSD_H

#include "supervisor/core/sup.h"

/* Does nothing without an address. A failure to send is logged once, and tried again. */
void statsd_new(struct sup *sup);
void statsd_free(struct sup *sup);

#endif
