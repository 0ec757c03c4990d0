/* SPDX-License-Identifier: Apache-2.0 */
/* service.c: field tables and validation of services and checks. Runs in: supervisor, cli. */
#include "model/service.h"

#include <ctype.h>
#include <string.h>

#include "common/duration.h"
#include "model/engine/table.h"
#include "model/engine/walk.h"

#define LABEL_MAX    63
#define PORT_MAX     65535
#define CHECK_MIN_NS NS_PER_S
#define NAME_MAX_DNS 253

static const char *const check_mode_names[] = { "", "healthiness", "readiness" };
static const char *const check_status_names[] = { "", "pending", "success", "failure" };

bool
service_name_is_valid(const char *name)
{
	size_t len = strlen(name);

	if (len == 0 || len > LABEL_MAX || name[0] == '-' || name[len - 1] == '-')
		return false;
	for (size_t i = 0; i < len; i++)
		if (!isascii(name[i]) || (!isalnum((unsigned char)name[i]) && name[i] != '-'))
			return false;
	return true;
}

bool
http_is_token(const char *text)
{
	for (const char *c = text; *c; c++)
		if (!isascii(*c) || (!isalnum((unsigned char)*c) && !strchr("!#$%&'*+-.^_`|~", *c)))
			return false;
	return *text != '\0';
}

bool
http_is_line(const char *text)
{
	while (*text && !iscntrl((unsigned char)*text))
		text++;
	return !*text;
}

int64_t
port_number(const char *label)
{
	int64_t n = 0;

	for (const char *c = label; *c; c++) {
		if (*c < '0' || *c > '9')
			return 0;
		n = n * 10 + (*c - '0');
		if (n > PORT_MAX)
			return 0;
	}
	return n;
}

#define S check_restart
static const struct field check_restart_fields[] = {
	F_INT(limit, "Limit"),
	F_DURATION_DEFAULT(grace, "Grace", NS_PER_S),
	F_BOOL(ignore_warnings, "IgnoreWarnings"),
};

static void
validate_check_restart(const void *obj, struct problems *p)
{
	const struct check_restart *r = obj;

	if (r->limit < 0 || r->grace < 0)
		model_problem(p, "check_restart: limit and grace must not be negative");
}
MODEL_TYPE(check_restart, check_restart_fields, .name = "check_restart",
    .validate = validate_check_restart);
#undef S

#define S header_values
static const struct field header_values_fields[] = { F_STRINGS(values, "Values") };
MODEL_TYPE(header_values, header_values_fields, .name = "header", .bare = true);
#undef S

#define S service_check
static const struct field service_check_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(type, "Type"),
	F_STRING(command, "Command"),
	F_STRINGS(args, "Args"),
	F_STRING(path, "Path"),
	F_STRING(protocol, "Protocol"),
	F_STRING(port_label, "PortLabel"),
	F_BOOL(expose, "Expose"),
	F_STRING(address_mode, "AddressMode"),
	F_DURATION(interval, "Interval"),
	F_DURATION(timeout, "Timeout"),
	F_STRING(initial_status, "InitialStatus"),
	F_STRING(tls_server_name, "TLSServerName"),
	F_BOOL(tls_skip_verify, "TLSSkipVerify"),
	F_STRING(method, "Method"),
	F_MAP(header, "Header", header_values),
	F_POINTER(check_restart, "CheckRestart", check_restart),
	F_STRING(grpc_service, "GRPCService"),
	F_BOOL(grpc_use_tls, "GRPCUseTLS"),
	F_STRING(task_name, "TaskName"),
	F_INT(success_before_passing, "SuccessBeforePassing"),
	F_INT(failures_before_critical, "FailuresBeforeCritical"),
	F_INT(failures_before_warning, "FailuresBeforeWarning"),
	F_STRING(body, "Body"),
	F_STRING(on_update, "OnUpdate"),
	F_STRING(notes, "Notes"),
};

static void
validate_http(const struct service_check *c, struct problems *p)
{
	if (!*str(c->path))
		model_problem(p, "path is missing");
	else if (strstr(c->path, "://") || !http_is_line(c->path))
		model_problem(
		    p, "path \"%.100s\" must be one line, without scheme and host", c->path);
	if (*str(c->protocol) && !str_eq(c->protocol, "http") && !str_eq(c->protocol, "https"))
		model_problem(
		    p, "protocol must be \"http\" or \"https\", not \"%.40s\"", c->protocol);
	if (strlen(str(c->tls_server_name)) > NAME_MAX_DNS)
		model_problem(p, "tls_server_name is too long");
	if (*str(c->method) && !http_is_token(c->method))
		model_problem(p, "method \"%.40s\" is not an HTTP method", c->method);
	for (size_t i = 0; i < c->header.n; i++) {
		const struct strings *values = &c->header.v[i].value.values;

		/* A name with a reference is checked when its alloc starts. */
		if (!strstr(str(c->header.v[i].key), "${") &&
		    !http_is_token(str(c->header.v[i].key)))
			model_problem(
			    p, "\"%.60s\" cannot be the name of a header", str(c->header.v[i].key));
		for (size_t k = 0; k < values->n; k++)
			if (!http_is_line(str(values->v[k])))
				model_problem(p, "header %.60s has a control character",
				    str(c->header.v[i].key));
	}
}

/* Returns the name of a setting that only Consul supports, or NULL. */
static const char *
find_impossible(const struct service_check *c)
{
	if (c->expose)
		return "expose";
	return *str(c->command) || c->args.n || *str(c->task_name) ? "command, args and task"
								   : NULL;
}

const char *
service_check_consul_only(const struct service_check *c)
{
	if (c->success_before_passing || c->failures_before_critical || c->failures_before_warning)
		return "success_before_passing, failures_before_critical and "
		       "failures_before_warning";
	if (str_eq(c->on_update, "ignore_warnings"))
		return "on_update \"ignore_warnings\"";
	if (c->check_restart && c->check_restart->ignore_warnings)
		return "check_restart with ignore_warnings";
	return NULL;
}

bool
service_check_has_port(const struct service_check *c)
{
	return str_eq(c->type, "http") || str_eq(c->type, "tcp");
}

bool
service_needs_driver_network(const struct service *s)
{
	bool needs = str_eq(s->address_mode, "driver");

	for (size_t i = 0; i < s->checks.n; i++)
		needs |= str_eq(s->checks.v[i].address_mode, "driver");
	return needs;
}

static void
validate_check(const struct service_check *c, bool nomad, struct problems *p)
{
	const char *impossible = service_check_has_port(c) ? find_impossible(c) : NULL,
		   *consul = nomad ? service_check_consul_only(c) : NULL;

	if (str_eq(c->type, "http"))
		validate_http(c, p);
	else if (!str_eq(c->type, "tcp"))
		model_problem(p, "type must be \"http\" or \"tcp\", not \"%.40s\"", str(c->type));
	if (c->interval < CHECK_MIN_NS || c->timeout < CHECK_MIN_NS)
		model_problem(p, "interval and timeout must be at least 1s");
	if (impossible)
		model_problem(p, "%s is not supported", impossible);
	if (consul)
		model_problem(p, "provider \"nomad\" does not support %s", consul);
	if (*str(c->address_mode) && !str_eq(c->address_mode, "host") &&
	    !str_eq(c->address_mode, "alloc") && !str_eq(c->address_mode, "driver"))
		model_problem(p,
		    "address_mode must be \"host\", \"alloc\" or \"driver\", not \"%.40s\"",
		    c->address_mode);
	/* Validated but ignored: it is Consul's; here a check is pending until its first try. */
	if (*str(c->initial_status) && !str_eq(c->initial_status, "passing") &&
	    !str_eq(c->initial_status, "warning") && !str_eq(c->initial_status, "critical"))
		model_problem(p,
		    "initial_status must be \"passing\", \"warning\" or \"critical\", not "
		    "\"%.40s\"",
		    c->initial_status);
	if (*str(c->on_update) && !str_eq(c->on_update, "require_healthy") &&
	    !str_eq(c->on_update, "ignore") && !str_eq(c->on_update, "ignore_warnings"))
		model_problem(p,
		    "on_update must be \"require_healthy\" or \"ignore\", not \"%.40s\"",
		    c->on_update);
	if (str_eq(c->on_update, "ignore") && c->check_restart)
		model_problem(p, "on_update \"ignore\" and check_restart exclude each other");
}
MODEL_TYPE(service_check, service_check_fields, .name = "check",
    .title = 1 + offsetof(struct service_check, name));
#undef S

#define S service
static const struct field service_fields[] = {
	F_STRING(name, "Name"),
	F_STRING(task_name, "TaskName"),
	F_STRING(port_label, "PortLabel"),
	F_STRING(address_mode, "AddressMode"),
	F_STRING(address, "Address"),
	F_BOOL(enable_tag_override, "EnableTagOverride"),
	F_STRINGS(tags, "Tags"),
	F_STRINGS(canary_tags, "CanaryTags"),
	F_LIST(checks, "Checks", service_check),
	F_POINTER(check_restart, "CheckRestart", check_restart, .flags = FIELD_NO_WIRE),
	F_JSON(connect, "Connect"),
	F_STRING_MAP(meta, "Meta"),
	F_STRING_MAP(canary_meta, "CanaryMeta"),
	F_STRING_MAP(tagged_addresses, "TaggedAddresses"),
	F_STRING(namespace, "Namespace"),
	F_STRING(on_update, "OnUpdate"),
	F_STRING(provider, "Provider"),
	F_STRING(cluster, "Cluster"),
	F_JSON(identity, "Identity"),
	F_STRING(kind, "Kind"),
	F_JSON(weights, "Weights"),
};

static void
validate_checks(const struct service *s, struct problems *p)
{
	const struct place *up = p->place;
	struct place here = { .up = up };
	char name[160];

	for (size_t i = 0; i < s->checks.n; i++) {
		(void)snprintf(name, sizeof name, "check \"%s\"", str(s->checks.v[i].name));
		here.name = name;
		p->place = &here;
		validate_check(&s->checks.v[i], str_eq(s->provider, SERVICE_PROVIDER_NOMAD), p);
		p->place = up;
	}
}

/* Services of both providers: without Consul they are registered in the same catalogue. */
static void
validate_service(const void *obj, struct problems *p)
{
	const struct service *s = obj;
	const char *mode = str(s->address_mode);

	if (*str(s->provider) && !str_eq(s->provider, SERVICE_PROVIDER_NOMAD) &&
	    !str_eq(s->provider, SERVICE_PROVIDER_CONSUL))
		model_problem(
		    p, "provider must be \"nomad\" or \"consul\", not \"%.40s\"", s->provider);
	/* A name with a reference is checked when its alloc starts. */
	if (!strstr(str(s->name), "${") && !service_name_is_valid(str(s->name)))
		model_problem(p,
		    "a service's name must have 1 to %d letters, digits and dashes, no dash at an "
		    "end",
		    LABEL_MAX);
	if (*mode && strcmp(mode, "auto") && strcmp(mode, "host") && strcmp(mode, "alloc") &&
	    strcmp(mode, "driver"))
		model_problem(p,
		    "address_mode must be \"auto\", \"host\", \"alloc\" or \"driver\", not "
		    "\"%.40s\"",
		    mode);
	if (*str(s->address) && *mode && strcmp(mode, "auto"))
		model_problem(p, "address needs address_mode \"auto\"");
	if (!json_is_null(s->connect) && json_object_size(s->connect) > 0)
		model_problem(p, "connect is not supported");
	validate_checks(s, p);
}
MODEL_TYPE(service, service_fields, .name = "service", .validate = validate_service,
    .title = 1 + offsetof(struct service, name));
#undef S

#define S service_registration
static const struct field service_registration_fields[] = {
	F_STRING(id, "ID"),
	F_STRING(service_name, "ServiceName"),
	F_STRING(namespace, "Namespace"),
	F_STRING(node_id, "NodeID"),
	F_STRING(datacenter, "Datacenter"),
	F_STRING(job_id, "JobID"),
	F_STRING(alloc_id, "AllocID"),
	F_STRINGS(tags, "Tags", .flags = FIELD_NOT_NIL),
	F_STRING(address, "Address"),
	F_INT(port, "Port"),
	F_UINT(create_index, "CreateIndex", .flags = FIELD_NO_EQUAL),
	F_UINT(modify_index, "ModifyIndex", .flags = FIELD_NO_EQUAL),
};
MODEL_TYPE(service_registration, service_registration_fields, .name = "service",
    .title = 1 + offsetof(struct service_registration, id));
#undef S

#define S check_result
static const struct field check_result_fields[] = {
	F_STRING(id, "ID"),
	F_ENUM(mode, "Mode", check_mode_names),
	F_ENUM(status, "Status", check_status_names),
	F_INT(status_code, "StatusCode", .flags = FIELD_OMIT_EMPTY),
	F_STRING(output, "Output"),
	F_INT(timestamp, "Timestamp"),
	F_STRING(group, "Group"),
	F_STRING(task, "Task", .flags = FIELD_OMIT_EMPTY),
	F_STRING(service, "Service"),
	F_STRING(check, "Check"),
};
MODEL_TYPE(check_result, check_result_fields, .name = "result",
    .title = 1 + offsetof(struct check_result, check));
#undef S
