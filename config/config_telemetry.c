// SPDX-License-Identifier: Apache-2.0
/* config_telemetry.c: reads telemetry { }. Runs in: the launcher's configuration child. */
#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "config/config_reader.h"

#define T(c) (&(c)->config->telemetry)

static int
add_filter(struct config_reader *c, const struct hcl_node *node)
{
	struct config_telemetry *t = T(c);
	char rule[TELEMETRY_TEXT_SIZE];
	int r = config_get_text(c, node, "prefix_filter", rule, sizeof rule);

	if (r < 0 || !rule[0])
		return r;
	if (rule[0] != '+' && rule[0] != '-')
		return config_fail(c, node->at,
		    "prefix_filter: expected a prefix after + or -, found \"%.64s\"", rule);
	if (t->n_filters == TELEMETRY_FILTERS_MAX)
		return config_fail(c, node->at, "prefix_filter: expected at most %d prefixes",
		    TELEMETRY_FILTERS_MAX);
	t->filters[t->n_filters].allow = rule[0] == '+';
	(void)strcpy(t->filters[t->n_filters++].prefix, rule + 1);
	return 0;
}

static int
read_prefix_filter(struct config_reader *c, const struct hcl_node *node)
{
	T(c)->n_filters = 0;
	return config_each_string(c, node, node->key, add_filter);
}

static int
add_meta_key(struct config_reader *c, const struct hcl_node *node)
{
	struct config_telemetry *t = T(c);

	if (t->n_meta_keys == TELEMETRY_KEYS_MAX)
		return config_fail(c, node->at,
		    "allowed_metadata_keys_in_metrics: expected at most %d keys",
		    TELEMETRY_KEYS_MAX);
	return config_get_text(c, node, "allowed_metadata_keys_in_metrics",
	    t->meta_keys[t->n_meta_keys++], TELEMETRY_TEXT_SIZE);
}

static int
read_meta_keys(struct config_reader *c, const struct hcl_node *node)
{
	T(c)->n_meta_keys = 0;
	return config_each_string(c, node, node->key, add_meta_key);
}

static int
read_interval(struct config_reader *c, const struct hcl_node *node)
{
	return config_get_duration(c, node, 1000, &T(c)->interval_ms);
}

/* Returns true for an address with a port: "127.0.0.1:8125", "[::1]:8125" or "localhost:8125". */
static bool
is_address(const char *text)
{
	const char *colon = strrchr(text, ':');
	unsigned char parsed[sizeof(struct in6_addr)];
	char host[TELEMETRY_TEXT_SIZE], *end;
	long port = colon ? strtol(colon + 1, &end, 10) : 0;
	size_t len;

	if (!colon || colon[1] < '0' || colon[1] > '9' || *end || port < 1 || port > 65535)
		return false;
	len = (size_t)(colon - text);
	memcpy(host, text, len);
	host[len] = '\0';
	if (host[0] == '[' && len > 1 && host[len - 1] == ']') {
		host[len - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, parsed) == 1;
	}
	return strcmp(host, "localhost") == 0 || inet_pton(AF_INET, host, parsed) == 1;
}

static int
read_statsd_address(struct config_reader *c, const struct hcl_node *node)
{
	char address[TELEMETRY_TEXT_SIZE];
	int r = config_get_text(c, node, node->key, address, sizeof address);

	if (r == 0 && address[0] && !is_address(address))
		return config_fail(c, node->at,
		    "statsd_address: expected an IP address with a port, such as 127.0.0.1:8125, "
		    "because names are not looked up; found \"%.64s\"",
		    address);
	if (r == 0)
		(void)strcpy(T(c)->statsd_address, address);
	return r;
}

#define UNUSED_SINK(key) UNUSED_AS(key, "has no effect: metrics are not sent to Circonus")
#define UNUSED_STORE(key)                                                                          \
	UNUSED_AS(key, "has no effect: a metric's value is read when it is asked for")

const struct config_attr config_telemetry_attrs[] = {
	BOOL("publish_allocation_metrics", telemetry.allocs),
	BOOL("publish_node_metrics", telemetry.node),
	BOOL("prometheus_metrics", telemetry.prometheus),
	BOOL("disable_hostname", telemetry.disable_hostname),
	BOOL("use_node_name", telemetry.use_node_name),
	BOOL("filter_default", telemetry.filter_default),
	BOOL("include_alloc_metadata_in_metrics", telemetry.alloc_meta),
	CALL("allowed_metadata_keys_in_metrics", read_meta_keys),
	CALL("prefix_filter", read_prefix_filter),
	CALL("collection_interval", read_interval),
	CALL("statsd_address", read_statsd_address),
	UNUSED_AS("statsite_address", "has no effect: metrics are not sent over TCP: "
				      "read /v1/metrics"),
	UNUSED_AS("datadog_address",
	    "has no effect: metrics are not sent in DogStatsD's format: let Datadog's agent read "
	    "/v1/metrics?format=prometheus"),
	UNUSED_AS("datadog_tags", "has no effect: metrics are not sent to Datadog"),
	UNUSED_STORE("in_memory_collection_interval"),
	UNUSED_STORE("in_memory_retention_period"),
	UNUSED_AS("disable_allocation_hook_metrics",
	    "has no effect: there are no metrics of hooks by Nomad's names"),
	UNUSED_AS("disable_dispatched_job_summary_metrics",
	    "has no effect: there are no metrics of job summaries"),
	UNUSED_AS("disable_quota_utilization_metrics", "has no effect: there are no quotas"),
	UNUSED_AS("disable_rpc_rate_metrics_labels",
	    "has no effect: there are no metrics of servers' requests"),
	UNUSED_SINK("circonus_api_app"),
	UNUSED_SINK("circonus_api_token"),
	UNUSED_SINK("circonus_api_url"),
	UNUSED_SINK("circonus_broker_id"),
	UNUSED_SINK("circonus_broker_select_tag"),
	UNUSED_SINK("circonus_check_display_name"),
	UNUSED_SINK("circonus_check_force_metric_activation"),
	UNUSED_SINK("circonus_check_id"),
	UNUSED_SINK("circonus_check_instance_id"),
	UNUSED_SINK("circonus_check_search_tag"),
	UNUSED_SINK("circonus_check_tags"),
	UNUSED_SINK("circonus_submission_interval"),
	UNUSED_SINK("circonus_submission_url"),
	{ 0 },
};
