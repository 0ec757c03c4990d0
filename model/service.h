/* SPDX-License-Identifier: Apache-2.0 */
/*
 * service.h: the `service` and `check` blocks of groups and tasks, their registrations, and the
 * results of checks. Runs in: supervisor, cli.
 */
#ifndef DROVER_MODEL_SERVICE_H
#define DROVER_MODEL_SERVICE_H

#include "model/engine/field.h"

struct check_restart {
	int64_t limit; /* 0: never */
	int64_t grace;
	bool ignore_warnings;
};

struct header_values {
	struct strings values;
};

struct service_check {
	char *name;
	char *type; /* "http" or "tcp"; with Consul there are others */
	char *path, *protocol, *method, *body;
	MODEL_MAP(struct header_values) header;
	char *port_label, *address_mode; /* empty: as the service */
	int64_t interval, timeout;
	char *on_update;
	struct check_restart *check_restart; /* NULL: a failing check restarts nothing */
	/* Used with Consul only. */
	char *command, *initial_status, *tls_server_name, *grpc_service, *task_name, *notes;
	struct strings args;
	bool expose, tls_skip_verify, grpc_use_tls;
	int64_t success_before_passing, failures_before_critical, failures_before_warning;
};

struct service {
	char *name, *port_label;
	char *address_mode, *address;
	struct strings tags, canary_tags;
	MODEL_LIST(struct service_check) checks;
	struct check_restart *check_restart; /* default for its checks, applied by job_complete() */
	char *on_update, *provider;
	char *task_name, *namespace, *cluster, *kind;
	struct string_map meta, canary_meta, tagged_addresses;
	bool enable_tag_override;
	json_t *connect, *identity, *weights;
};

/* One registered instance, as in lists. */
struct service_registration {
	char *id, *service_name, *namespace, *node_id, *datacenter, *job_id, *alloc_id;
	struct strings tags;
	char *address;
	int64_t port;
	uint64_t create_index, modify_index;
};

enum check_mode { CHECK_MODE_NONE, CHECK_HEALTHINESS, CHECK_READINESS };
enum check_status { CHECK_STATUS_NONE, CHECK_PENDING, CHECK_SUCCESS, CHECK_FAILURE };

struct check_result {
	char *id;
	enum check_mode mode;
	enum check_status status;
	int64_t status_code; /* of an http check; 0 if there was no answer */
	char *output;
	int64_t timestamp; /* seconds */
	char *group, *task, *service, *check;
};

MODEL_DECLARE(check_restart);
MODEL_DECLARE(header_values);
MODEL_DECLARE(service_check);
MODEL_DECLARE(service);
MODEL_DECLARE(service_registration);
MODEL_DECLARE(check_result);

#define SERVICE_PROVIDER_NOMAD  "nomad"
#define SERVICE_PROVIDER_CONSUL "consul"

/* Returns whether this is a check of a type that is known: one that connects to a port. */
bool service_check_has_port(const struct service_check *c);
/* Returns whether the service or a check of it has address_mode "driver". */
bool service_needs_driver_network(const struct service *s);
/* Returns the members of the check that only Consul gives an effect, or NULL. */
const char *service_check_consul_only(const struct service_check *c);
/* Returns whether name is an RFC 1123 label: 1 to 63 letters, digits and dashes, without a dash at
 * either end. */
bool service_name_is_valid(const char *name);
/* Return whether text may be part of an HTTP request: as a token (methods, names of headers), or as
 * a line without control characters. */
bool http_is_token(const char *text);
bool http_is_line(const char *text);
/* Returns "8080" as a number, or 0 if label is not a valid port. */
int64_t port_number(const char *label);

#endif
