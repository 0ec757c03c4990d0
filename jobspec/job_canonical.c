// SPDX-License-Identifier: Apache-2.0
/* job_canonical.c: the defaults that Nomad's API sets in a job that was read, with `Canonicalize`.
 * Runs in: job-parser. */
#include <string.h>

#include "common/cleanup.h"
#include "jobspec/jobspec.h"

#define SECOND ((json_int_t)1000000000)
#define MINUTE (60 * SECOND)
#define HOUR   (60 * MINUTE)

enum kind { END, NOTHING, FLAG, NUMBER, TEXT, LIST, MAP };

/* A member and the value that it has by default. */
struct value {
	const char *name;
	enum kind kind;
	json_int_t number;
	const char *text;
	bool empty_too; /* an empty text counts as not set */
};

#define UNSET(name, kind, number, text, empty_too)                                                 \
	{                                                                                          \
		name, kind, number, text, empty_too                                                \
	}
#define UNSET_FLAG(name, value)   UNSET(name, FLAG, value, NULL, false)
#define UNSET_NUMBER(name, value) UNSET(name, NUMBER, value, NULL, false)
#define UNSET_TEXT(name, value)   UNSET(name, TEXT, 0, value, false)
#define UNSET_OTHER(name, kind)   UNSET(name, kind, 0, NULL, false)
/* An empty text counts as not set too. */
#define DEFAULT_TEXT(name, value) UNSET(name, TEXT, 0, value, true)

static const struct value in_job[] = { UNSET_TEXT("ID", ""), UNSET_TEXT("ParentID", ""),
	UNSET_TEXT("Namespace", "default"), UNSET_NUMBER("Priority", 50), UNSET_FLAG("Stop", false),
	UNSET_TEXT("Region", "global"), UNSET_TEXT("NodePool", ""), UNSET_TEXT("Type", "service"),
	UNSET_FLAG("AllAtOnce", false), UNSET_TEXT("ConsulNamespace", ""),
	UNSET_TEXT("VaultNamespace", ""), UNSET_TEXT("NomadTokenID", ""), UNSET_TEXT("Status", ""),
	UNSET_TEXT("StatusDescription", ""), UNSET_FLAG("Stable", false),
	UNSET_NUMBER("Version", 0), UNSET_NUMBER("CreateIndex", 0), UNSET_NUMBER("ModifyIndex", 0),
	UNSET_NUMBER("JobModifyIndex", 0), { 0 } };
static const struct value in_update[] = { UNSET_NUMBER("Stagger", 30 * SECOND),
	UNSET_NUMBER("MaxParallel", 1), UNSET_TEXT("HealthCheck", "checks"),
	UNSET_NUMBER("MinHealthyTime", 10 * SECOND), UNSET_NUMBER("HealthyDeadline", 5 * MINUTE),
	UNSET_NUMBER("ProgressDeadline", 10 * MINUTE), UNSET_FLAG("AutoRevert", false),
	UNSET_NUMBER("Canary", 0), UNSET_FLAG("AutoPromote", false), { 0 } };
static const struct value in_migrate[] = { UNSET_NUMBER("MaxParallel", 1),
	UNSET_TEXT("HealthCheck", "checks"), UNSET_NUMBER("MinHealthyTime", 10 * SECOND),
	UNSET_NUMBER("HealthyDeadline", 5 * MINUTE), { 0 } };
static const struct value in_service_reschedule[] = { UNSET_NUMBER("Attempts", 0),
	UNSET_NUMBER("Interval", 0), UNSET_NUMBER("Delay", 30 * SECOND),
	UNSET_TEXT("DelayFunction", "exponential"), UNSET_NUMBER("MaxDelay", HOUR),
	UNSET_FLAG("Unlimited", true), { 0 } };
static const struct value in_batch_reschedule[] = { UNSET_NUMBER("Attempts", 1),
	UNSET_NUMBER("Interval", 24 * HOUR), UNSET_NUMBER("Delay", 5 * SECOND),
	UNSET_TEXT("DelayFunction", "constant"), UNSET_NUMBER("MaxDelay", 0),
	UNSET_FLAG("Unlimited", false), { 0 } };
static const struct value in_other_reschedule[] = { UNSET_NUMBER("Attempts", 0),
	UNSET_NUMBER("Interval", 0), UNSET_NUMBER("Delay", 0), UNSET_TEXT("DelayFunction", ""),
	UNSET_NUMBER("MaxDelay", 0), UNSET_FLAG("Unlimited", false), { 0 } };
static const struct value in_service_restart[] = { UNSET_NUMBER("Delay", 15 * SECOND),
	UNSET_NUMBER("Attempts", 2), UNSET_NUMBER("Interval", 30 * MINUTE),
	UNSET_TEXT("Mode", "fail"), UNSET_FLAG("RenderTemplates", false), { 0 } };
static const struct value in_batch_restart[] = { UNSET_NUMBER("Delay", 15 * SECOND),
	UNSET_NUMBER("Attempts", 3), UNSET_NUMBER("Interval", 24 * HOUR),
	UNSET_TEXT("Mode", "fail"), UNSET_FLAG("RenderTemplates", false), { 0 } };
static const struct value in_periodic[] = { UNSET_FLAG("Enabled", true), UNSET_TEXT("Spec", ""),
	UNSET_OTHER("Specs", LIST), UNSET_TEXT("SpecType", "cron"),
	UNSET_FLAG("ProhibitOverlap", false), DEFAULT_TEXT("TimeZone", "UTC"), { 0 } };
static const struct value in_multiregion[] = { UNSET_OTHER("Strategy", MAP),
	UNSET_OTHER("Regions", LIST), { 0 } };
static const struct value in_strategy[] = { UNSET_NUMBER("MaxParallel", 0),
	UNSET_TEXT("OnFailure", ""), { 0 } };
static const struct value in_region[] = { UNSET_NUMBER("Count", 1),
	UNSET_OTHER("Datacenters", LIST), UNSET_OTHER("Meta", MAP), { 0 } };
static const struct value in_weighted[] = { UNSET_NUMBER("Weight", 50), { 0 } };
static const struct value in_disk[] = { UNSET_FLAG("Sticky", false), UNSET_FLAG("Migrate", false),
	UNSET_NUMBER("SizeMB", 300), { 0 } };
static const struct value in_disconnect[] = { UNSET_FLAG("Replace", true),
	UNSET_TEXT("Reconcile", "best_score"), { 0 } };
static const struct value in_scaling[] = { UNSET_FLAG("Enabled", true),
	DEFAULT_TEXT("Type", "horizontal"), { 0 } };
static const struct value in_cluster[] = { DEFAULT_TEXT("Cluster", "default"), { 0 } };
static const struct value in_log[] = { UNSET_NUMBER("MaxFiles", 10),
	UNSET_NUMBER("MaxFileSizeMB", 10), UNSET_FLAG("Disabled", false),
	UNSET_OTHER("Enabled", NOTHING), { 0 } };
static const struct value in_task[] = { UNSET_OTHER("Resources", MAP),
	UNSET_OTHER("LogConfig", MAP), UNSET_NUMBER("KillTimeout", 5 * SECOND), { 0 } };
static const struct value in_sidecar_task[] = { UNSET_OTHER("Resources", MAP),
	UNSET_OTHER("LogConfig", MAP), UNSET_NUMBER("KillTimeout", 5 * SECOND),
	UNSET_NUMBER("ShutdownDelay", 0), { 0 } };
static const struct value in_resources[] = { UNSET_NUMBER("Cores", 0),
	UNSET_NUMBER("MemoryMB", 300), UNSET_OTHER("Devices", NOTHING),
	UNSET_OTHER("DiskMB", NOTHING), UNSET_OTHER("IOPS", NOTHING),
	UNSET_OTHER("MemoryMaxMB", NOTHING), UNSET_OTHER("NUMA", NOTHING),
	UNSET_OTHER("Networks", NOTHING), UNSET_OTHER("SecretsMB", NOTHING), { 0 } };
static const struct value in_numa[] = { DEFAULT_TEXT("Affinity", "none"), { 0 } };
static const struct value in_device[] = { UNSET_NUMBER("Count", 1), { 0 } };
static const struct value in_artifact[] = { UNSET_TEXT("GetterMode", "any"),
	UNSET_FLAG("GetterInsecure", false), UNSET_TEXT("GetterSource", ""), { 0 } };
static const struct value in_template[] = { UNSET_TEXT("SourcePath", ""),
	UNSET_TEXT("DestPath", ""), UNSET_TEXT("EmbeddedTmpl", ""),
	UNSET_TEXT("ChangeMode", "restart"), UNSET_FLAG("Once", false),
	UNSET_NUMBER("Splay", 5 * SECOND), UNSET_TEXT("Perms", "0644"),
	UNSET_TEXT("LeftDelim", "{{"), UNSET_TEXT("RightDelim", "}}"), UNSET_FLAG("Envvars", false),
	UNSET_FLAG("ErrMissingKey", false), UNSET_NUMBER("VaultGrace", 0), { 0 } };
static const struct value in_script[] = { UNSET_TEXT("Command", ""), UNSET_OTHER("Args", LIST),
	UNSET_NUMBER("Timeout", 5 * SECOND), UNSET_FLAG("FailOnError", false),
	UNSET_FLAG("RunOnFirstRender", false), { 0 } };
static const struct value in_vault[] = { UNSET_FLAG("Env", true), UNSET_FLAG("DisableFile", false),
	UNSET_TEXT("Namespace", ""), DEFAULT_TEXT("Cluster", "default"),
	UNSET_TEXT("ChangeMode", "restart"), UNSET_TEXT("ChangeSignal", "SIGHUP"),
	UNSET_FLAG("AllowTokenExpiration", false), { 0 } };
static const struct value in_mount[] = { UNSET_TEXT("PropagationMode", "private"),
	UNSET_FLAG("ReadOnly", false), UNSET_TEXT("SELinuxLabel", ""), { 0 } };
static const struct value in_plugin[] = { DEFAULT_TEXT("MountDir", "/csi"),
	DEFAULT_TEXT("StagePublishBaseDir", "/local/csi"), { 0 } };
static const struct value in_service[] = { DEFAULT_TEXT("AddressMode", "auto"),
	DEFAULT_TEXT("OnUpdate", "require_healthy"), DEFAULT_TEXT("Provider", "consul"),
	DEFAULT_TEXT("Cluster", "default"), { 0 } };
static const struct value in_check_restart[] = { UNSET_NUMBER("Grace", SECOND), { 0 } };
static const struct value in_gateway_proxy[] = { UNSET_NUMBER("ConnectTimeout", 5 * SECOND),
	{ 0 } };
static const struct value in_listener[] = { DEFAULT_TEXT("Protocol", "tcp"), { 0 } };

static json_t *
default_value(const struct value *v)
{
	switch (v->kind) {
	case NOTHING:
		return json_null();
	case FLAG:
		return json_boolean(v->number);
	case NUMBER:
		return json_integer(v->number);
	case TEXT:
		return json_string(v->text);
	case LIST:
		return json_array();
	default:
		return json_object();
	}
}

static bool
is_set(const json_t *object, const char *name)
{
	const json_t *v = json_object_get(object, name);

	return v && !json_is_null(v);
}

static const char *
text_of(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

/* Sets the values that are not set. Ignores what is no object: a block that is missing. */
static void
fill_object(json_t *object, const struct value *values)
{
	for (const struct value *v = values; json_is_object(object) && v->kind != END; v++)
		if (!is_set(object, v->name) || (v->empty_too && !*text_of(object, v->name)))
			json_object_set_new(object, v->name, default_value(v));
}

static void
fill_each(json_t *list, const struct value *values)
{
	json_t *x;
	size_t i;

	json_array_foreach (list, i, x)
		fill_object(x, values);
}

/* Empty lists and maps become null. */
static void
drop_empty(json_t *object, const char *const *names)
{
	for (; json_is_object(object) && *names; names++) {
		const json_t *v = json_object_get(object, *names);

		if ((json_is_array(v) && json_array_size(v) == 0) ||
		    (json_is_object(v) && json_object_size(v) == 0))
			json_object_set_new(object, *names, json_null());
	}
}
#define DROP_EMPTY(object, ...) drop_empty(object, (const char *const[]){ __VA_ARGS__, NULL })

/* Makes object[name] a copy of base in which the members that were set before stay. */
static void
inherit(json_t *object, const char *name, const json_t *base)
{
	json_t *own = json_incref(json_object_get(object, name)), *merged = json_deep_copy(base),
	       *v;
	const char *key;

	json_object_foreach (own, key, v)
		if (!json_is_null(v))
			json_object_set(merged, key, v);
	json_decref(own);
	json_object_set_new(object, name, merged);
}

static void
finish_rules(json_t *object)
{
	fill_each(json_object_get(object, "Affinities"), in_weighted);
	fill_each(json_object_get(object, "Spreads"), in_weighted);
}

static void
finish_resources(json_t *r)
{
	json_t *devices = json_object_get(r, "Devices"), *device;
	size_t i;

	if (!is_set(r, "CPU"))
		json_object_set_new(r, "CPU", json_integer(is_set(r, "Cores") ? 0 : 100));
	fill_object(r, in_resources);
	fill_each(devices, in_device);
	json_array_foreach (devices, i, device)
		finish_rules(device);
	fill_object(json_object_get(r, "NUMA"), in_numa);
	DROP_EMPTY(json_object_get(r, "NUMA"), "Devices");
}

static void
finish_proxy(json_t *proxy)
{
	json_t *upstream;
	size_t i;

	DROP_EMPTY(json_object_get(proxy, "Expose"), "Path");
	DROP_EMPTY(json_object_get(proxy, "ExposeConfig"), "Path");
	DROP_EMPTY(proxy, "Upstreams", "Config");
	DROP_EMPTY(json_object_get(proxy, "TransparentProxy"), "ExcludeInboundPorts",
	    "ExcludeOutboundCIDRs", "ExcludeOutboundPorts", "ExcludeUIDs");
	json_array_foreach (json_object_get(proxy, "Upstreams"), i, upstream)
		DROP_EMPTY(upstream, "Config");
}

static void
finish_gateway(json_t *gateway)
{
	json_t *proxy = json_object_get(gateway, "Proxy"),
	       *ingress = json_object_get(gateway, "Ingress"), *listener, *service;
	size_t i, j;

	fill_object(proxy, in_gateway_proxy);
	DROP_EMPTY(proxy, "EnvoyGatewayBindAddresses", "Config");
	DROP_EMPTY(ingress, "Listeners");
	json_array_foreach (json_object_get(ingress, "Listeners"), i, listener) {
		fill_object(listener, in_listener);
		DROP_EMPTY(listener, "Services");
		json_array_foreach (json_object_get(listener, "Services"), j, service)
			DROP_EMPTY(service, "Hosts");
	}
	DROP_EMPTY(json_object_get(gateway, "Terminating"), "Services");
}

static void
finish_connect(json_t *connect)
{
	json_t *sidecar = json_object_get(connect, "SidecarService"),
	       *task = json_object_get(connect, "SidecarTask");

	DROP_EMPTY(sidecar, "Tags", "Meta");
	finish_proxy(json_object_get(sidecar, "Proxy"));
	if (json_is_object(task)) {
		DROP_EMPTY(task, "Config", "Env", "Meta");
		fill_object(task, in_sidecar_task);
		finish_resources(json_object_get(task, "Resources"));
		fill_object(json_object_get(task, "LogConfig"), in_log);
		fill_each(json_object_get(task, "VolumeMounts"), in_mount);
	}
	finish_gateway(json_object_get(connect, "Gateway"));
}

/* A check has the service's settings where it has none of its own. */
static void
finish_check(json_t *check, const json_t *service)
{
	static const char *const counts[] = { "SuccessBeforePassing", "FailuresBeforeCritical",
		"FailuresBeforeWarning" };
	json_t *restart = json_object_get(service, "CheckRestart"),
	       *own = json_object_get(check, "CheckRestart");

	if (json_is_object(restart)) {
		if (json_integer_value(json_object_get(own, "Limit")) <= 0)
			json_object_del(own, "Limit");
		if (!json_is_true(json_object_get(own, "IgnoreWarnings")))
			json_object_del(own, "IgnoreWarnings");
		inherit(check, "CheckRestart", restart);
	}
	fill_object(json_object_get(check, "CheckRestart"), in_check_restart);
	for (size_t i = 0; i < ELEMENTSOF(counts); i++)
		if (json_integer_value(json_object_get(check, counts[i])) < 0)
			json_object_set_new(check, counts[i], json_integer(0));
	if (!*text_of(check, "OnUpdate"))
		json_object_set(check, "OnUpdate", json_object_get(service, "OnUpdate"));
}

static void
finish_weight(json_t *weights, const char *name)
{
	if (json_is_object(weights) && json_integer_value(json_object_get(weights, name)) <= 0)
		json_object_set_new(weights, name, json_integer(1));
}

/* task: NULL for a service of the group. */
static void
finish_service(json_t *service, const json_t *task, const json_t *group, const json_t *job)
{
	json_t *weights = json_object_get(service, "Weights"), *check;
	size_t i;

	if (!*text_of(service, "Name"))
		json_object_set_new(service, "Name",
		    json_sprintf("%s-%s%s%s", text_of(job, "Name"), text_of(group, "Name"),
			task ? "-" : "", task ? text_of(task, "Name") : ""));
	fill_object(service, in_service);
	DROP_EMPTY(service, "Meta", "CanaryMeta", "TaggedAddresses");
	finish_connect(json_object_get(service, "Connect"));
	finish_weight(weights, "Passing");
	finish_weight(weights, "Warning");
	json_array_foreach (json_object_get(service, "Checks"), i, check)
		finish_check(check, service);
}

static void
finish_artifact(json_t *a)
{
	const char *source, *slash;

	fill_object(a, in_artifact);
	DROP_EMPTY(a, "GetterOptions", "GetterHeaders");
	if (is_set(a, "RelativeDest"))
		return;
	source = text_of(a, "GetterSource");
	slash = strrchr(source, '/');
	if (strcmp(text_of(a, "GetterMode"), "file") == 0)
		json_object_set_new(
		    a, "RelativeDest", json_sprintf("local/%s", slash ? slash + 1 : source));
	else
		json_object_set_new(a, "RelativeDest", json_string("local/"));
}

static void
finish_template(json_t *t)
{
	const char *signal = text_of(t, "ChangeSignal");
	char upper[64];
	size_t n = 0;

	fill_object(t, in_template);
	fill_object(json_object_get(t, "ChangeScript"), in_script);
	if (!is_set(t, "ChangeSignal")) {
		signal = strcmp(text_of(t, "ChangeMode"), "signal") == 0 ? "SIGHUP" : "";
		json_object_set_new(t, "ChangeSignal", json_string(signal));
		return;
	}
	for (; signal[n] && n < sizeof upper - 1; n++)
		upper[n] = signal[n] >= 'a' && signal[n] <= 'z' ? (char)(signal[n] - 'a' + 'A')
								: signal[n];
	upper[n] = '\0';
	if (!signal[n])
		json_object_set_new(t, "ChangeSignal", json_string_nocheck(upper));
}

static void
finish_plugin(json_t *plugin)
{
	fill_object(plugin, in_plugin);
	if (json_is_object(plugin) &&
	    json_integer_value(json_object_get(plugin, "HealthTimeout")) == 0)
		json_object_set_new(plugin, "HealthTimeout", json_integer(30 * SECOND));
}

static void
finish_task(json_t *task, const json_t *group, const json_t *job)
{
	json_t *x;
	size_t i;

	fill_object(task, in_task);
	finish_resources(json_object_get(task, "Resources"));
	fill_object(json_object_get(task, "LogConfig"), in_log);
	json_array_foreach (json_object_get(task, "Artifacts"), i, x)
		finish_artifact(x);
	fill_object(json_object_get(task, "Vault"), in_vault);
	fill_object(json_object_get(task, "Consul"), in_cluster);
	json_array_foreach (json_object_get(task, "Templates"), i, x)
		finish_template(x);
	json_array_foreach (json_object_get(task, "Secrets"), i, x)
		DROP_EMPTY(x, "Config", "Env");
	json_array_foreach (json_object_get(task, "Services"), i, x)
		finish_service(x, task, group, job);
	finish_rules(task);
	fill_each(json_object_get(task, "VolumeMounts"), in_mount);
	finish_plugin(json_object_get(task, "CSIPluginConfig"));
	inherit(task, "RestartPolicy", json_object_get(group, "RestartPolicy"));
}

static void
finish_count(json_t *group)
{
	json_t *scaling = json_object_get(group, "Scaling"), *least;

	least = json_object_get(scaling, "Min");
	if (!is_set(group, "Count"))
		json_object_set_new(
		    group, "Count", json_is_integer(least) ? json_incref(least) : json_integer(1));
	fill_object(scaling, in_scaling);
	if (json_is_object(scaling) && !json_is_integer(least))
		json_object_set(scaling, "Min", json_object_get(group, "Count"));
}

/* The rules of the job hold for its groups, and those that depend on the job's type. */
static void
finish_policies(json_t *group, const json_t *job)
{
	const char *type = text_of(job, "Type");
	const json_t *update = json_object_get(job, "Update"),
		     *reschedule = json_object_get(job, "Reschedule"),
		     *migrate = json_object_get(job, "Migrate");
	bool service = strcmp(type, "service") == 0, system = strcmp(type, "system") == 0,
	     batch = strcmp(type, "batch") == 0;

	if (json_is_object(update))
		inherit(group, "Update", update);
	fill_object(json_object_get(group, "Update"), in_update);
	if (json_is_object(reschedule))
		inherit(group, "ReschedulePolicy", reschedule);
	if (!is_set(group, "ReschedulePolicy") && !system && strcmp(type, "sysbatch") != 0)
		json_object_set_new(group, "ReschedulePolicy", json_object());
	fill_object(json_object_get(group, "ReschedulePolicy"), service ? in_service_reschedule
								: batch ? in_batch_reschedule
									: in_other_reschedule);
	if (json_is_object(migrate))
		inherit(group, "Migrate", migrate);
	if (!is_set(group, "Migrate") && service)
		json_object_set_new(group, "Migrate", json_object());
	fill_object(json_object_get(group, "Migrate"), in_migrate);
	if (!is_set(group, "RestartPolicy"))
		json_object_set_new(group, "RestartPolicy", json_object());
	fill_object(json_object_get(group, "RestartPolicy"),
	    service || system ? in_service_restart : in_batch_restart);
}

static void
finish_group(json_t *group, const json_t *job)
{
	json_t *consul = json_object_get(group, "Consul"), *x;
	size_t i;

	finish_count(group);
	if (!is_set(group, "EphemeralDisk"))
		json_object_set_new(group, "EphemeralDisk", json_object());
	fill_object(json_object_get(group, "EphemeralDisk"), in_disk);
	if (json_is_object(consul) && !*text_of(consul, "Namespace"))
		json_object_set(consul, "Namespace", json_object_get(job, "ConsulNamespace"));
	fill_object(consul, in_cluster);
	finish_policies(group, job);
	json_array_foreach (json_object_get(group, "Tasks"), i, x)
		finish_task(x, group, job);
	finish_rules(group);
	json_array_foreach (json_object_get(group, "Services"), i, x)
		finish_service(x, NULL, group, job);
	fill_object(json_object_get(group, "Disconnect"), in_disconnect);
}

void
jobspec_canonicalize(json_t *job)
{
	json_t *regions = json_object_get(job, "Multiregion"), *group;
	const char *type;
	size_t i;

	fill_object(job, in_job);
	fill_object(json_object_get(job, "Periodic"), in_periodic);
	type = text_of(job, "Type");
	if (!is_set(job, "Update") && (strcmp(type, "service") == 0 || strcmp(type, "system") == 0))
		json_object_set_new(job, "Update", json_object());
	fill_object(json_object_get(job, "Update"), in_update);
	fill_object(regions, in_multiregion);
	fill_object(json_object_get(regions, "Strategy"), in_strategy);
	fill_each(json_object_get(regions, "Regions"), in_region);
	json_array_foreach (json_object_get(job, "TaskGroups"), i, group)
		finish_group(group, job);
	finish_rules(job);
	DROP_EMPTY(json_object_get(job, "UI"), "Links");
}
