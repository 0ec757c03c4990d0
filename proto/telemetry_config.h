/* SPDX-License-Identifier: Apache-2.0 */
/* telemetry_config.h: the telemetry block of the configuration. Runs in: the launcher's
 * configuration child, supervisor. */
#ifndef DROVER_PROTO_TELEMETRY_CONFIG_H
#define DROVER_PROTO_TELEMETRY_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define TELEMETRY_FILTERS_MAX 32
#define TELEMETRY_KEYS_MAX    16
#define TELEMETRY_TEXT_SIZE   128

struct config_telemetry {
	bool allocs, node; /* metrics of tasks, and Nomad's of the machine */
	bool prometheus;   /* Prometheus' format may be read */
	bool disable_hostname, use_node_name;
	bool filter_default; /* whether a metric without a filter is wanted */
	uint32_t n_filters;
	struct {
		bool allow;
		char prefix[TELEMETRY_TEXT_SIZE];
	} filters[TELEMETRY_FILTERS_MAX];
	bool alloc_meta;      /* the metadata of jobs become labels of their tasks … */
	uint32_t n_meta_keys; /* … with these keys only; 0: all */
	char meta_keys[TELEMETRY_KEYS_MAX][TELEMETRY_TEXT_SIZE];
	char statsd_address[TELEMETRY_TEXT_SIZE]; /* "127.0.0.1:8125", "[::1]:8125"; empty: none */
	uint64_t interval_ms;                     /* of sending there */
};

#endif
