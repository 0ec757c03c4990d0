/* SPDX-License-Identifier: Apache-2.0 */
/*
 * test_model_msgpack.c: the msgpack codec with every field table, against messages between servers
 * and clients of each version. Runs in: unit tests.
 */
#include <string.h>

#include "common/base64.h"
#include "common/duration.h"
#include "common/msgpack_read.h"
#include "model/payload.h"
#include "supervisor/cluster/rpc/rpc_serve.h"
#include "tests/unit/model_fill.h"
#include "tests/unit/model_recorded.h"
#include "supervisor/cluster/rpc/rpc_alloc.h"
#include "supervisor/cluster/rpc/rpc_claim.h"
#include "supervisor/cluster/rpc/rpc_csi.h"
#include "supervisor/cluster/rpc/rpc_stream.h"

static const struct type *const types[] = { &alloc_type, &alloc_update_type, &node_type,
	&csi_volume_type, &rpc_query_req_type, &rpc_meta_rep_type, &rpc_register_req_type,
	&rpc_status_req_type, &rpc_node_rep_type, &rpc_node_req_type, &rpc_client_allocs_rep_type,
	&rpc_get_node_rep_type, &rpc_allocs_req_type, &rpc_allocs_rep_type, &rpc_alloc_req_type,
	&rpc_get_alloc_rep_type, &rpc_update_req_type, &rpc_events_req_type, &rpc_drain_req_type,
	&rpc_sign_req_type, &rpc_sign_rep_type, &rpc_claim_req_type, &rpc_claim_rep_type,
	&rpc_services_req_type, &rpc_service_delete_req_type, &rpc_checks_rep_type,
	&rpc_unpublish_req_type, &rpc_task_req_type, &rpc_alloc_usage_rep_type,
	&rpc_host_stats_rep_type, &rpc_fs_req_type, &rpc_fs_list_rep_type, &rpc_fs_stat_rep_type,
	&rpc_monitor_req_type, &rpc_meta_apply_req_type, &rpc_meta_apply_rep_type,
	&rpc_stream_open_type, &rpc_stream_accept_type, &rpc_csi_node_req_type,
	&rpc_csi_controller_req_type, &rpc_csi_rep_type, &rpc_csi_snapshots_rep_type };

static const char *const versions[] = { "1.6", "1.7", "1.8", "1.9", "1.10", "1.11", "2.0" };
/* For the first version with some feature. */
enum { V1_6, V1_7, V1_8, V1_9, V1_10, V1_11, V2_0 };

/* --- every table, encoded and decoded --- */

START_TEST(every_field_survives)
{
	const struct type *type = types[_i / 2];
	enum model_flags flags = _i % 2 ? MODEL_COMPACT : 0;
	void *full = model_new(type), *back = model_new(type);
	struct raw raw;
	int seed = 0;

	fill_skips = FIELD_NO_WIRE;
	fill(type, full, &seed);
	raw = encode(type, full, flags);
	decode(type, raw, back);
	assert_same(type, full, back);
	ck_assert_int_gt(seed, 0);
	drop(raw);
	model_free(type, full);
	model_free(type, back);
}
END_TEST

START_TEST(empty_survives)
{
	const struct type *type = types[_i / 2];
	void *empty = model_new(type), *back = model_new(type);
	struct raw raw = encode(type, empty, _i % 2 ? MODEL_COMPACT : 0);

	if (_i % 2)
		ck_assert(raw.len == 1 && *(const uint8_t *)raw.data == 0x80);
	decode(type, raw, back);
	assert_same(type, empty, back);
	drop(raw);
	model_free(type, empty);
	model_free(type, back);
}
END_TEST

/* --- recorded messages --- */

static const struct recorded {
	int since; /* a version */
	const char *name;
	const struct type *type;
} recorded[] = {
	{ V1_6, "register_req", &rpc_register_req_type },
	{ V1_6, "register_rep", &rpc_node_rep_type },
	{ V1_6, "status_req", &rpc_status_req_type },
	{ V1_6, "status_rep", &rpc_node_rep_type },
	{ V1_6, "client_allocs_req", &rpc_node_req_type },
	{ V1_6, "client_allocs_rep", &rpc_client_allocs_rep_type },
	{ V1_6, "allocs_req", &rpc_allocs_req_type },
	{ V1_6, "allocs_web_rep", &rpc_allocs_rep_type },
	{ V1_6, "allocs_calc_rep", &rpc_allocs_rep_type },
	{ V1_6, "update_req", &rpc_update_req_type },
	{ V1_6, "update_rep", &rpc_meta_rep_type },
	{ V1_6, "server_agent_monitor_req", &rpc_monitor_req_type },
	{ V1_6, "server_allocations_checks_req", &rpc_task_req_type },
	{ V1_6, "server_allocations_garbagecollectall_req", &rpc_node_req_type },
	{ V1_6, "server_allocations_restart_req", &rpc_task_req_type },
	{ V1_6, "server_allocations_signal_req", &rpc_task_req_type },
	{ V1_6, "server_allocations_stats_req", &rpc_task_req_type },
	{ V1_6, "server_clientstats_stats_req", &rpc_node_req_type },
	{ V1_6, "server_csi_controllercreatesnapshot_req", &rpc_csi_controller_req_type },
	{ V1_6, "server_csi_controllercreatevolume_req", &rpc_csi_controller_req_type },
	{ V1_6, "server_csi_controllerdeletevolume_req", &rpc_csi_controller_req_type },
	{ V1_6, "server_csi_controllervalidatevolume_req", &rpc_csi_controller_req_type },
	{ V1_6, "server_csi_nodedetachvolume_req", &rpc_csi_node_req_type },
	{ V1_6, "server_filesystem_list_req", &rpc_fs_req_type },
	{ V1_6, "server_filesystem_logs_req", &rpc_fs_req_type },
	{ V1_6, "server_filesystem_stat_req", &rpc_fs_req_type },
	{ V1_6, "server_filesystem_stream_req", &rpc_fs_req_type },
	{ V1_6, "server_nodemeta_apply_req", &rpc_meta_apply_req_type },
	{ V1_6, "server_nodemeta_read_req", &rpc_node_req_type },
	{ V1_6, "get_node_rep", &rpc_get_node_rep_type },
	{ V1_6, "allocs_csi_rep", &rpc_allocs_rep_type },
	{ V1_6, "claim_rep", &rpc_claim_rep_type },
	{ V1_7, "sign_rep", &rpc_sign_rep_type },
	{ V1_7, "sign_req", &rpc_sign_req_type },
	{ V1_7, "sign_tokens_rep", &rpc_sign_rep_type },
	{ V1_7, "allocs_tokens_rep", &rpc_allocs_rep_type },
	{ V1_11, "server_nodeidentity_get_req", &rpc_node_req_type },
};

/* Returns the recording, and its version; the loops that use it go over all pairs. */
static const struct recorded *
find_recorded(int i, const char **ret_version)
{
	const struct recorded *r = &recorded[i % (int)ELEMENTSOF(recorded)];
	int version = i / (int)ELEMENTSOF(recorded);

	*ret_version = versions[version];
	return version < r->since ? NULL : r;
}

START_TEST(recorded_bodies_come_back_the_same)
{
	const char *version;
	const struct recorded *r = find_recorded(_i, &version);
	struct raw raw, back;
	void *obj;

	if (!r)
		return;
	raw = read_fixture(version, r->name);
	obj = model_new(r->type);
	decode(r->type, raw, obj);
	back = encode(r->type, obj, 0);
	compare(back, raw, r->name);
	drop(back);
	model_free(r->type, obj);
	drop(raw);
}
END_TEST

/* Also the allocs, which an answer leaves undecoded. */
START_TEST(recorded_allocs_come_back_the_same)
{
	static const char *const names[] = { "allocs_web_rep", "allocs_calc_rep", "allocs_csi_rep",
		"allocs_tokens_rep" };

	for (int i = 0; i < (_i < V1_7 ? 3 : 4); i++) {
		struct raw back, raw = read_fixture(versions[_i], names[i]);
		cleanup_done(rpc_allocs_rep) struct rpc_allocs_rep rep = { 0 };
		cleanup_done(alloc) struct alloc a;
		struct err e = { 0 };

		alloc_init(&a);
		decode(&rpc_allocs_rep_type, raw, &rep);
		ck_assert_uint_eq(rep.allocs.n, 1);
		ck_assert_msg(rpc_alloc_decode(&rep.allocs.v[0], &a, &e) == 0, "%s", e.msg);
		back = encode(&alloc_type, &a, 0);
		compare(back, rep.allocs.v[0], "alloc");
		drop(back);
		drop(raw);
	}
}
END_TEST

START_TEST(recorded_answers_say_this)
{
	const char *v = versions[_i];
	bool new = _i >= V1_11;
	cleanup_done(rpc_node_rep) struct rpc_node_rep reg = { 0 }, beat = { 0 };
	cleanup_done(rpc_client_allocs_rep) struct rpc_client_allocs_rep allocs = { 0 };
	struct raw a = read_fixture(v, "register_rep"), b = read_fixture(v, "status_rep"),
		   c = read_fixture(v, "client_allocs_rep");

	decode(&rpc_node_rep_type, a, &reg);
	decode(&rpc_node_rep_type, b, &beat);
	decode(&rpc_client_allocs_rep_type, c, &allocs);
	drop(a);
	drop(b);
	drop(c);
	ck_assert_int_ge(reg.heartbeat_ttl, 10 * NS_PER_S);
	ck_assert_int_le(reg.heartbeat_ttl, 20 * NS_PER_S);
	ck_assert_int_eq(reg.num_nodes, 1);
	ck_assert_uint_eq(reg.meta.index, 8);
	ck_assert_int_eq(reg.scheduling_eligibility, NODE_ELIGIBLE);
	ck_assert_uint_eq(reg.servers.n, 1);
	ck_assert_str_eq(reg.servers.v[0].rpc_advertise_addr, reg.leader_rpc_addr);
	ck_assert_str_eq(reg.servers.v[0].datacenter, "dc1");
	/* Three parts separated by dots: a JWT. */
	ck_assert_int_eq(reg.signed_identity != NULL, new);
	ck_assert(!new || (strlen(reg.signed_identity) > 700 && strchr(reg.signed_identity, '.')));
	ck_assert_ptr_null(beat.signed_identity);
	ck_assert_int_ge(beat.heartbeat_ttl, 10 * NS_PER_S);
	ck_assert_uint_ge(allocs.allocs.n, 3);
	ck_assert_uint_eq(strlen(allocs.allocs.v[0].key), 36);
	ck_assert_int_le(allocs.allocs.v[0].value, (int64_t)allocs.meta.index);
	ck_assert(allocs.meta.known_leader);
	ck_assert_ptr_nonnull(allocs.migrate_tokens.v);
	ck_assert_uint_eq(allocs.migrate_tokens.n, 0);
}
END_TEST

static struct alloc *
read_alloc(const char *version, const char *name, struct raw *ret_message)
{
	cleanup_done(rpc_allocs_rep) struct rpc_allocs_rep rep = { 0 };
	struct alloc *a = alloc_new();
	struct err e = { 0 };

	*ret_message = read_fixture(version, name);
	decode(&rpc_allocs_rep_type, *ret_message, &rep);
	ck_assert_msg(rpc_alloc_decode(&rep.allocs.v[0], a, &e) == 0, "%s", e.msg);
	return a;
}

/* A task with the default identity as variable and file, two named identities, and their tokens. */
START_TEST(recorded_identities_say_this)
{
	cleanup_done(rpc_sign_rep) struct rpc_sign_rep rep = { 0 };
	struct raw message, b = read_fixture(versions[_i], "sign_tokens_rep");
	struct alloc *a = read_alloc(versions[_i], "allocs_tokens_rep", &message);
	const struct task *t = group_task(alloc_group(a), "t");
	const struct workload_identity *brief = identity_of(t, "short"),
				       *lasting = identity_of(t, "long_one");

	ck_assert(t->identity->env && t->identity->file && t->identity->ttl == 0);
	ck_assert_str_eq(t->identity->name, IDENTITY_DEFAULT);
	ck_assert_str_eq(t->identity->audience.v[0], "nomadproject.io");
	ck_assert_ptr_nonnull(string_map_get(&a->signed_identities, "t"));
	ck_assert_uint_eq(t->identities.n, 2);
	ck_assert(brief->file && !brief->env && lasting->env && !lasting->file);
	ck_assert_uint_eq(brief->audience.n, 2);
	ck_assert_str_eq(str(brief->filepath), _i < V1_9 ? "" : "local/short.jwt");
	ck_assert_int_eq(brief->change_mode, IDENTITY_SIGNAL);
	ck_assert_str_eq(brief->change_signal, "SIGWINCH");
	ck_assert_int_eq(brief->ttl, 22 * NS_PER_S);
	ck_assert_int_eq(lasting->change_mode, IDENTITY_RESTART);
	ck_assert_int_eq(lasting->ttl, 3600 * NS_PER_S);
	decode(&rpc_sign_rep_type, b, &rep);
	ck_assert_uint_eq(rep.signed_identities.n, 2);
	ck_assert_uint_eq(rep.rejections.n, 0);
	ck_assert_uint_eq(rep.meta.index, a->create_index);
	for (size_t i = 0; i < 2; i++) {
		const struct rpc_identity *one = &rep.signed_identities.v[i];

		ck_assert_str_eq(one->alloc_id, a->id);
		ck_assert_str_eq(one->workload_identifier, "t");
		ck_assert_int_eq(one->workload_type, 0);
		ck_assert(strlen(one->jwt) > 700 && strncmp(one->jwt, "eyJ", 3) == 0);
		ck_assert_int_gt(one->expiration, a->create_time);
	}
	drop(b);
	drop(message);
	alloc_free(a);
}
END_TEST

/* A raw_exec service with ports, a host volume, lifecycle, template, logs, a service. */
START_TEST(recorded_service_says_this)
{
	struct raw message;
	struct alloc *a = read_alloc(versions[_i], "allocs_web_rep", &message);
	const struct alloc_shared_resources *shared = &a->allocated_resources->shared;
	const struct task_group *g = alloc_group(a);
	const struct task *t = group_task(g, "server");

	ck_assert_str_eq(a->name, "web.app[0]");
	ck_assert_int_eq(a->desired_status, DESIRED_RUN);
	ck_assert_int_eq(a->client_status, CLIENT_PENDING);
	ck_assert_uint_gt(a->alloc_modify_index, 0);
	ck_assert_int_gt(a->create_time, 1700000000 * NS_PER_S);
	ck_assert_uint_eq(strlen(a->deployment_id), 36);
	ck_assert_uint_eq(shared->ports.n, 2);
	ck_assert_int_eq(shared->disk_mb, 400);
	ck_assert_int_eq(a->allocated_resources->tasks.n, 2);
	ck_assert_int_eq(map_get(alloc_task_resources, &a->allocated_resources->tasks, "server")
			     ->memory.memory_mb,
	    64);
	ck_assert_int_eq(map_get(lifecycle, &a->allocated_resources->task_lifecycles, "init")->hook,
	    HOOK_PRESTART);
	ck_assert_ptr_nonnull(string_map_get(&a->signed_identities, "server"));
	ck_assert_int_eq(a->job->type, JOB_SERVICE);
	ck_assert_str_eq(string_map_get(&a->job->meta, "owner"), "g\xc3\xa4rtner");
	ck_assert_uint_eq(group_stop_after_ms(g), 90000);
	ck_assert_int_eq(map_get(volume_request, &g->volumes, "data")->type, VOLUME_HOST);
	ck_assert_int_eq(g->update->min_healthy_time, NS_PER_S);
	ck_assert_str_eq(g->update->health_check, "task_states");
	ck_assert_int_eq(g->restart_policy->mode, RESTART_FAIL);
	ck_assert_str_eq(t->driver, "raw_exec");
	ck_assert_str_eq(t->user, "root");
	ck_assert(t->leader);
	ck_assert_int_eq(t->kill_timeout, 3 * NS_PER_S);
	ck_assert_str_eq(string_map_get(&t->env, "EMPTY"), "");
	ck_assert_str_eq(json_string_value(json_object_get(t->config, "command")), "/bin/sleep");
	ck_assert_uint_eq(t->templates.n, 1);
	ck_assert_str_eq(t->templates.v[0].dest_path, "local/app.conf");
	ck_assert_int_eq(t->log_config->max_file_size_mb, 2);
	job_complete(a->job);
	ck_assert_int_eq(t->resources->secrets_mb, 0);
	alloc_free(a);
	drop(message);
}
END_TEST

/* A dispatched exec batch job with a payload, one reserved core and a mount. */
START_TEST(recorded_dispatch_says_this)
{
	struct raw message;
	struct alloc *a = read_alloc(versions[_i], "allocs_calc_rep", &message);
	const struct task *t = group_task(alloc_group(a), "sum");
	uint8_t payload[256], plain[PAYLOAD_MAX + 1] = "";
	char *at = (char *)plain;
	size_t len = 0;

	ck_assert(a->job->dispatched);
	ck_assert_str_eq(a->job->parent_id, "calc");
	ck_assert_str_eq(string_map_get(&a->job->meta, "who"), "me");
	ck_assert_uint_lt(strlen(a->job->payload), sizeof(payload));
	ck_assert_int_eq(base64_decode(a->job->payload, payload, &len), 0);
	/* 60 numbers with a space after each, in Snappy's format. */
	ck_assert_uint_ne(len, 171);
	ck_assert_int_eq(payload_unpack(payload, len, plain, &len), 0);
	ck_assert_uint_eq(len, 171);
	for (int n = 1; n <= 60; n++)
		ck_assert_int_eq((int)strtol(at, &at, 10), n);
	ck_assert_str_eq(t->driver, "exec");
	ck_assert_int_eq(t->resources->cores, 1);
	ck_assert_str_eq(t->volume_mounts.v[0].destination, "/data");
	ck_assert_str_eq(t->dispatch_payload->file, "in.txt");
	ck_assert_uint_eq(a->allocated_resources->tasks.v[0].value.cpu.reserved_cores.n, 1);
	alloc_free(a);
	drop(message);
}
END_TEST

START_TEST(recorded_node_says_this)
{
	cleanup_done(rpc_register_req) struct rpc_register_req req = { 0 };
	struct raw raw = read_fixture(versions[_i], "register_req");
	const struct node_resources *res;
	const struct topology *top;

	decode(&rpc_register_req_type, raw, &req);
	drop(raw);
	res = &req.node->node_resources;
	top = res->processors.topology;
	ck_assert_str_eq(string_map_get(&req.node->attributes, "kernel.name"), "linux");
	ck_assert_int_eq(req.node->status, NODE_INIT);
	ck_assert_int_eq(res->cpu.cpu_shares, 4000);
	ck_assert_uint_eq(res->networks.n, 3);
	ck_assert(map_get(driver_info, &req.node->drivers, "exec")->healthy);
	ck_assert_int_gt(map_get(driver_info, &req.node->drivers, "exec")->update_time, 0);
	ck_assert_int_eq(top != NULL, _i >= V1_7);
	if (!top)
		return;
	ck_assert_str_eq(str(top->nodes), _i < V1_8 ? "" : "AA==");
	ck_assert_uint_eq(top->cores.n, 2);
	ck_assert_uint_eq(top->cores.v[1].base_speed, 2000);
}
END_TEST

/* A null unsets a key, which differs from an absent key. */
START_TEST(recorded_meta_has_its_null)
{
	cleanup_done(rpc_meta_apply_req) struct rpc_meta_apply_req req = { 0 };
	struct raw raw = read_fixture(versions[_i], "server_nodemeta_apply_req"), back;
	cleanup_free char *hex = NULL;

	decode(&rpc_meta_apply_req_type, raw, &req);
	drop(raw);
	ck_assert_str_eq(json_string_value(json_object_get(req.meta, "c")), "d");
	ck_assert(json_is_null(json_object_get(req.meta, "e")));
	back = encode(&rpc_meta_apply_req_type, &req, MODEL_COMPACT);
	hex = to_hex(back);
	ck_assert_ptr_nonnull(strstr(hex, "a165c0"));
	drop(back);
}
END_TEST

START_TEST(recorded_requests_say_this)
{
	cleanup_done(rpc_csi_controller_req) struct rpc_csi_controller_req create = { 0 };
	cleanup_done(rpc_task_req) struct rpc_task_req restart = { 0 };
	cleanup_done(rpc_fs_req) struct rpc_fs_req logs = { 0 };
	struct raw a = read_fixture(versions[_i], "server_csi_controllercreatevolume_req"),
		   b = read_fixture(versions[_i], "server_allocations_restart_req"),
		   c = read_fixture(versions[_i], "server_filesystem_logs_req");

	decode(&rpc_csi_controller_req_type, a, &create);
	decode(&rpc_task_req_type, b, &restart);
	decode(&rpc_fs_req_type, c, &logs);
	drop(a);
	drop(b);
	drop(c);
	ck_assert_str_eq(create.plugin_id, "p2");
	ck_assert_int_eq(create.capacity_max, 2 << 20);
	ck_assert_str_eq(create.mount_options->fs_type, "ext4");
	ck_assert_int_eq(create.volume_capabilities.v[0].access_mode, CSI_SINGLE_NODE_WRITER);
	ck_assert_str_eq(string_map_get(&create.secrets, "key"), "s3");
	ck_assert(restart.all_tasks && !restart.task_name);
	ck_assert_str_eq(restart.query.region, "global");
	ck_assert_str_eq(logs.log_type, "stdout");
	ck_assert_str_eq(logs.origin, "end");
	ck_assert_int_eq(logs.offset, 600);
}
END_TEST

/* --- our own encoding --- */

static void
assert_bytes(const struct type *type, const void *obj, enum model_flags flags, const char *want)
{
	struct raw raw = encode(type, obj, flags);
	cleanup_free char *hex = to_hex(raw);

	ck_assert_str_eq(hex, want);
	drop(raw);
}

START_TEST(a_beat_is_these_bytes)
{
	struct rpc_status_req req = { .node_id = "n",
		.status = NODE_READY,
		.write = { .region = "global", .auth_token = "t" } };

	assert_bytes(&rpc_status_req_type, &req, MODEL_COMPACT,
	    "84a64e6f64654944a16ea6537461747573a57265616479a6526567696f6ea6676c6f62616ca94175746854"
	    "6f"
	    "6b656ea174");
}
END_TEST

/* Go encodes a number with the sign of its type. */
START_TEST(numbers_are_as_go_has_them)
{
	static const struct {
		int64_t n;
		const char *bytes;
	} ints[] = { { 0, "00" }, { 127, "7f" }, { 128, "d10080" }, { 32767, "d17fff" },
		{ 32768, "d200008000" }, { 2147483648, "d30000000080000000" }, { -1, "ff" },
		{ -32, "e0" }, { -33, "d0df" }, { -128, "d080" }, { -129, "d1ff7f" },
		{ -32769, "d2ffff7fff" }, { -2147483649, "d3ffffffff7fffffff" } },
	  uints[] = { { 0, "00" }, { 127, "7f" }, { 128, "cc80" }, { 256, "cd0100" },
		  { 65536, "ce00010000" }, { 4294967296, "cf0000000100000000" },
		  { -1, "cfffffffffffffffff" } };
	struct rpc_server server = { 0 };
	struct rpc_meta_rep rep = { 0 };
	size_t i;

	for (i = 0; i < ELEMENTSOF(ints); i++) {
		char hex[80] = "81af5250434d616a6f7256657273696f6e";

		server.rpc_major_version = ints[i].n;
		assert_bytes(&rpc_server_type, &server, MODEL_COMPACT,
		    ints[i].n ? strcat(hex, ints[i].bytes) : "80");
	}
	for (i = 1; i < ELEMENTSOF(uints); i++) {
		char hex[80] = "81a5496e646578";

		rep.meta.index = (uint64_t)uints[i].n;
		assert_bytes(&rpc_meta_rep_type, &rep, MODEL_COMPACT, strcat(hex, uints[i].bytes));
	}
}
END_TEST

START_TEST(times_are_fifteen_bytes)
{
	static const struct {
		int64_t ns;
		const char *bytes;
	} cases[] = { { 0, "010000000000000000000000"
			   "00ffff" },
		{ 1709528767 * NS_PER_S + 89, "010000000edd774dbf00000059ffff" },
		{ -1, "010000000e7791f6ff3b9ac9ffffff" } };
	uint8_t bytes[GO_TIME_SIZE];
	int64_t back;
	size_t i;

	for (i = 0; i < ELEMENTSOF(cases); i++) {
		cleanup_free char *hex = NULL;

		go_time_format(cases[i].ns, bytes);
		hex = to_hex((struct raw){ .data = bytes, .len = sizeof(bytes) });
		ck_assert_str_eq(hex, cases[i].bytes);
		ck_assert(go_time_parse(bytes, sizeof(bytes), &back));
		ck_assert_int_eq(back, cases[i].ns);
	}
	/* Another zone is the same instant; a zone with seconds has a byte more. */
	ck_assert(go_time_parse("\1\0\0\0\x0e\xdd\x77\x4d\xbf\0\0\0\x59\0\x3c", 15, &back));
	ck_assert_int_eq(back, 1709528767 * NS_PER_S + 89);
	ck_assert(go_time_parse("\2\0\0\0\x0e\xdd\x77\x4d\xbf\0\0\0\x59\0\x3c\1", 16, &back));
	ck_assert_int_eq(back, 1709528767 * NS_PER_S + 89);
	/* Out of range. */
	ck_assert(go_time_parse("\1\x7f\xff\xff\xff\xff\xff\xff\xff\0\0\0\0\0\0", 15, &back));
	ck_assert_int_eq(back, INT64_MAX);
	ck_assert(go_time_parse("\1\x80\0\0\0\0\0\0\0\0\0\0\0\0\0", 15, &back));
	ck_assert_int_eq(back, -INT64_MAX);
	ck_assert(!go_time_parse("\3\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15, &back));
	ck_assert(!go_time_parse("\2\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 15, &back));
	ck_assert(!go_time_parse("\1\0\0\0\0\0\0\0\0\xff\xff\xff\xff\0\0", 15, &back));
	ck_assert(!go_time_parse("\1", 1, &back));
	ck_assert(!go_time_parse("", 0, &back));
}
END_TEST

/* Servers crash at a nil where a struct is expected, so raw JSON must not contain one. */
START_TEST(no_list_or_map_gets_a_nil)
{
	cleanup_done(node_resources) struct node_resources res;
	cleanup_done(task) struct task task;
	struct raw raw;
	cleanup_free char *hex = NULL;

	node_resources_init(&res);
	task_init(&task);
	res.devices = json_loads("[null,{\"Name\":null,\"Vendor\":\"v\"},[null]]", 0, NULL);
	raw = encode(&node_resources_type, &res, MODEL_COMPACT);
	hex = to_hex(raw);
	ck_assert_str_eq(hex, "81a744657669636573"
			      "92"
			      "81a656656e646f72a176"
			      "90");
	drop(raw);
	/* A driver's block is passed unchanged. */
	task.config = json_loads("{\"a\":null}", 0, NULL);
	assert_bytes(&task_type, &task, MODEL_COMPACT, "81a6436f6e66696781a161c0");
}
END_TEST

/* --- what a peer may send --- */

static const struct {
	const char *bytes, *message; /* NULL: accepted */
} jobs[] = {
	{ "80", NULL },
	{ "c0", NULL },
	{ "de0001a24944a161", NULL },
	{ "df00000001a24944da000161", NULL },
	{ "81a24944db0000000161", NULL },
	{ "81a24944c5000161", NULL },
	{ "81a24944c60000000161", NULL },
	{ "81a24944da000161", NULL },
	{ "81a85072696f72697479ca42480000", NULL }, /* 50.0 in four bytes */
	{ "81a85072696f72697479d300000000000000ff", NULL },
	{ "81a756657273696f6ed00f", NULL },       /* signed, not below 0 */
	{ "81a3582e59dc0001c70301010203", NULL }, /* a list with an extension that is not used */
	{ "81a3582e59d80100000000000000000000000000000000", NULL },
	{ "81a3582e59d801000000", "?: the message ends in the middle" },
	{ "82a24944a161a24944a162", NULL },                 /* the later value wins */
	{ "81c4024944d90161", NULL },                       /* other encodings of strings */
	{ "81a24944c0", NULL },                             /* nil: like an absent key */
	{ "81a85072696f72697479cb4049000000000000", NULL }, /* 50.0 */
	{ "81a453746f7001", NULL },                         /* 1 for true */
	{ "81aa5461736b47726f75707392c080", NULL },         /* a nil element */
	{ "81a44d65746181a161c0", NULL },                   /* a nil value */
	{ "8101a161", NULL },                               /* a key that is not a string */
	{ "81a3537461d47f00", NULL },                       /* an extension that is not used */
	{ "81a6537461747573a161", NULL },                   /* a status of a newer version */
	{ "81a24944cd0001", "ID: expected a string, found 1" },
	{ "81a2494490", "ID: expected a string, found a list" },
	{ "81a24944a16100", "there are bytes after the message's end" },
	{ "81a24944a3610062",
	    "ID: expected a string without NUL, found 3 bytes that are not text" },
	{ "81a24944a261", "ID: the message ends in the middle" },
	{ "81a24944c1", "ID: this is not valid msgpack" },
	{ "90", "expected a map, found a list" },
	{ "", "the message ends in the middle" },
	{ "81a85072696f72697479cb3ff8000000000000",
	    "Priority: expected a whole number within 64 bits, found 1.5" },
	{ "81a85072696f72697479cfffffffffffffffff",
	    "Priority: expected a whole number within 64 bits, found 18446744073709551615" },
	{ "81a756657273696f6eff", "Version: expected a whole number of 0 or more, found -1" },
	{ "81a453746f7002", "Stop: expected true or false, found 2" },
	{ "81a454797065a463726f6e", "Type: expected a known value, found \"cron\"" },
	{ "81aa5461736b47726f7570739181a55461736b739181a6436f6e666967a178",
	    "TaskGroups[0].Tasks[0].Config: expected a map, found \"x\"" },
	{ "81a44d65746182a161a162a161a163", "Meta: the key \"a\" occurs twice" },
	{ "81a7537072656164739f", "Spreads: this is not valid msgpack" },
	{ "81aa5461736b47726f757073ddffffffff", "TaskGroups: this is not valid msgpack" },
	{ "81a44d657461dfffffffff", "Meta: this is not valid msgpack" },
	{ "81a24944dbffffffff", "ID: the message ends in the middle" },
	{ "81a24944c9ffffffff00", "ID: the message ends in the middle" },
};

START_TEST(what_a_peer_may_send)
{
	cleanup_done(job) struct job job;
	struct raw raw = from_hex(jobs[_i].bytes);
	struct job empty;
	struct err e = { 0 };
	int r;

	job_init(&job);
	job_init(&empty);
	r = model_from_msgpack(&job_type, raw.data, raw.len, &job, WIRE_MEMORY_MAX, &e);
	drop(raw);
	ck_assert_msg(r == (jobs[_i].message ? -EINVAL : 0), "%s", e.msg);
	ck_assert_str_eq(e.msg, str(jobs[_i].message));
	if (jobs[_i].message)
		assert_same(&job_type, &job, &empty);
}
END_TEST

/* A megabyte of empty maps would be 300 MiB of tasks. */
START_TEST(a_message_takes_no_more_than_it_may)
{
	static const char *const heads[] = { "81aa5461736b47726f757073dd00100000",
		"81a753707265616473dd00100000", "81ab4461746163656e74657273dd00100000" };
	static const uint8_t elements[] = { 0x80, 0x80, 0xa0 };
	struct raw head = from_hex(heads[_i]);
	cleanup_free char *bytes = malloc(head.len + (1 << 20));
	cleanup_done(job) struct job job;
	struct err e = { 0 };
	int r;

	memcpy(bytes, head.data, head.len);
	memset(bytes + head.len, elements[_i], 1 << 20);
	job_init(&job);
	r = model_from_msgpack(&job_type, bytes, head.len + (1 << 20), &job, 8 << 20, &e);
	ck_assert_int_eq(r, -EMSGSIZE);
	ck_assert_ptr_nonnull(strstr(e.msg, "more memory than is allowed"));
	drop(head);
}
END_TEST

/* As deep as the message is long, skipped and decoded. */
START_TEST(depth_costs_nothing)
{
	struct raw head = from_hex(_i ? "81a753707265616473" : "81a753707265616478");
	size_t n = 1 << 20;
	cleanup_free char *bytes = malloc(head.len + n);
	cleanup_done(job) struct job job;
	struct err e = { 0 };
	int r;

	memcpy(bytes, head.data, 9);
	memset(bytes + 9, 0x91, n);
	bytes[8 + n] = (char)0xc0;
	job_init(&job);
	r = model_from_msgpack(&job_type, bytes, 9 + n, &job, WIRE_MEMORY_MAX, &e);
	ck_assert_int_eq(r, _i ? -EINVAL : 0);
	ck_assert_int_eq(strstr(e.msg, "expected fewer levels") != NULL, _i);
	drop(head);
}
END_TEST

/* Truncated in the middle of a word, of a head, of a list: never accepted as complete. */
START_TEST(no_prefix_is_a_message)
{
	const char *version;
	const struct recorded *recording = find_recorded(_i, &version);
	struct mp_scan scan = { 0 };
	const struct type *type;
	struct raw raw;
	struct err e;
	size_t n;

	if (!recording)
		return;
	type = recording->type;
	raw = read_fixture(version, recording->name);
	for (n = 0; n < raw.len; n += n < 500 ? 1 : 7) {
		void *obj = model_new(type);
		cleanup_free char *exact = malloc(n + 1);

		memcpy(exact, raw.data, n);
		ck_assert_int_eq(mp_scan(&scan, exact, n), 0);
		ck_assert_int_lt(model_from_msgpack(type, exact, n, obj, WIRE_MEMORY_MAX, &e), 0);
		model_free(type, obj);
	}
	ck_assert_int_eq(mp_scan(&scan, raw.data, raw.len), 1);
	ck_assert_uint_eq(scan.at, raw.len);
	drop(raw);
}
END_TEST

/* An alloc of a newer version is rejected alone, by name, and the other one runs. */
START_TEST(one_alloc_that_cannot_be_read)
{
	cleanup_done(rpc_allocs_rep) struct rpc_allocs_rep rep = { 0 };
	cleanup_done(alloc) struct alloc good, bad;
	/* Allocs [{ID x, AllocModifyIndex 7, Job {Type cron}}, {ID y}], Index 9 */
	struct raw raw = from_hex("82a6416c6c6f637392"
				  "83a34a6f6281a454797065a463726f6ea24944a178"
				  "b0416c6c6f634d6f64696679496e64657807"
				  "81a24944a179"
				  "a5496e64657809");
	struct err e = { 0 };

	alloc_init(&good);
	alloc_init(&bad);
	decode(&rpc_allocs_rep_type, raw, &rep);
	ck_assert_uint_eq(rep.meta.index, 9);
	ck_assert_uint_eq(rep.allocs.n, 2);
	ck_assert_int_eq(rpc_alloc_decode(&rep.allocs.v[0], &bad, &e), -EINVAL);
	ck_assert_str_eq(e.msg, "Job.Type: expected a known value, found \"cron\"");
	ck_assert_str_eq(bad.id, "x");
	ck_assert_uint_eq(bad.alloc_modify_index, 7);
	ck_assert_ptr_null(bad.job);
	ck_assert_int_eq(rpc_alloc_decode(&rep.allocs.v[1], &good, &e), 0);
	ck_assert_str_eq(good.id, "y");
	drop(raw);
}
END_TEST

START_TEST(frames_are_these_bytes)
{
	struct text t = { 0 };
	cleanup_free char *hex = NULL;

	rpc_frame_data(&t, "{}", 2);
	rpc_frame_data(&t, "", 0);
	rpc_frame_error(&t, 404, "no");
	hex = to_hex((struct raw){ .data = t.text, .len = t.len });
	ck_assert_str_eq(hex,
	    "82a54572726f72c0a75061796c6f6164a27b7d"
	    "82a54572726f72c0a75061796c6f6164a0"
	    "82a54572726f7282a74d657373616765a26e6fa4436f6465d10194a75061796c6f6164c0");
	text_done(&t);
}
END_TEST

START_TEST(bytes_as_text)
{
	static const char *const pairs[] = { "", "Zg==", "Zm8=", "Zm9v",
		"Zm9vYg==", "Zm9vYmE=", "Zm9vYmFy" };
	static const char *const none[] = { "Z", "Zg", "Zg=", "Zh==", "Zm9=", "=m9v",
		"Z===", "Zm9v====", "Zg==Zm9v", "Zm 9", "Zm9v\n" };
	char text[BASE64_SIZE(6)], bytes[8];
	size_t i, len = 0;

	for (i = 0; i < ELEMENTSOF(pairs); i++) {
		ck_assert_uint_eq(base64_encode("foobar", i, text), strlen(pairs[i]));
		ck_assert_str_eq(text, pairs[i]);
		ck_assert_int_eq(base64_decode(pairs[i], bytes, &len), 0);
		ck_assert_uint_eq(len, i);
		ck_assert_mem_eq(bytes, "foobar", i);
	}
	for (i = 0; i < ELEMENTSOF(none); i++)
		ck_assert_int_eq(base64_decode(none[i], bytes, &len), -EINVAL);
}
END_TEST

static void
add_tests(TCase *tc)
{
	const int n_versions = ELEMENTSOF(versions), n_types = ELEMENTSOF(types),
		  n_recorded = n_versions * (int)ELEMENTSOF(recorded);

	tcase_add_loop_test(tc, every_field_survives, 0, n_types * 2);
	tcase_add_loop_test(tc, empty_survives, 0, n_types * 2);
	tcase_add_loop_test(tc, recorded_bodies_come_back_the_same, 0, n_recorded);
	tcase_add_loop_test(tc, recorded_allocs_come_back_the_same, 0, n_versions);
	tcase_add_loop_test(tc, recorded_answers_say_this, 0, n_versions);
	tcase_add_loop_test(tc, recorded_service_says_this, 0, n_versions);
	tcase_add_loop_test(tc, recorded_identities_say_this, V1_7, n_versions);
	tcase_add_loop_test(tc, recorded_dispatch_says_this, 0, n_versions);
	tcase_add_loop_test(tc, recorded_node_says_this, 0, n_versions);
	tcase_add_loop_test(tc, recorded_meta_has_its_null, 0, n_versions);
	tcase_add_loop_test(tc, recorded_requests_say_this, 0, n_versions);
	tcase_add_test(tc, a_beat_is_these_bytes);
	tcase_add_test(tc, numbers_are_as_go_has_them);
	tcase_add_test(tc, times_are_fifteen_bytes);
	tcase_add_test(tc, no_list_or_map_gets_a_nil);
	tcase_add_loop_test(tc, what_a_peer_may_send, 0, (int)ELEMENTSOF(jobs));
	tcase_add_loop_test(tc, a_message_takes_no_more_than_it_may, 0, 3);
	tcase_add_loop_test(tc, depth_costs_nothing, 0, 2);
	tcase_add_loop_test(tc, no_prefix_is_a_message, 0, n_recorded);
	tcase_add_test(tc, one_alloc_that_cannot_be_read);
	tcase_add_test(tc, frames_are_these_bytes);
	tcase_add_test(tc, bytes_as_text);
}

int
main(void)
{
	return unit_run("model_msgpack", add_tests);
}
