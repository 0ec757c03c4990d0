/* SPDX-License-Identifier: Apache-2.0 */
/* test_model_claims.c: who may claim a volume, and the names of usages. Runs in: unit tests. */
#include <string.h>

#include "supervisor/server/claim/claims.h"
#include "tests/unit/unit.h"

static struct csi_volume vol;
static struct err e;

static void
set_up(void)
{
	struct csi_capability *c;
	int access;

	csi_volume_init(&vol);
	e = (struct err){ 0 };
	str_set(&vol.id, "v");
	str_set(&vol.plugin_id, "p");
	vol.schedulable = true;
	for (access = CSI_SINGLE_NODE_READER; access <= CSI_MULTI_NODE_MULTI_WRITER; access++) {
		c = list_add(csi_capability, &vol.requested_capabilities);
		c->access_mode = (enum csi_access)access;
		c->attachment_mode = CSI_FILE_SYSTEM;
	}
}

static void
tear_down(void)
{
	csi_volume_done(&vol);
}

static int
claim(const char *alloc, enum claim_mode mode, enum csi_access access, enum claim_state state)
{
	struct csi_claim c = { .alloc_id = (char *)alloc,
		.node_id = (char *)"n",
		.mode = mode,
		.access_mode = access,
		.attachment_mode = CSI_FILE_SYSTEM,
		.state = state };

	return volume_claim(&vol, &c, &e);
}

#define R   CSI_SINGLE_NODE_READER
#define W   CSI_SINGLE_NODE_WRITER
#define MR  CSI_MULTI_NODE_READER
#define MSW CSI_MULTI_NODE_SINGLE_WRITER
#define MMW CSI_MULTI_NODE_MULTI_WRITER

/* Alloc a holds a claim; alloc b requests one. */
static const struct {
	enum csi_access access;
	enum claim_mode held, asked;
	int r;
	const char *message;
} slots[] = {
	{ R, CLAIM_READ, CLAIM_READ, -EBUSY,
	    "volume max claims reached: volume v (single-node-reader-only) is read by alloc a on "
	    "node n" },
	{ W, CLAIM_WRITE, CLAIM_WRITE, -EBUSY,
	    "volume max claims reached: volume v (single-node-writer) is written by alloc a on "
	    "node n" },
	{ W, CLAIM_WRITE, CLAIM_READ, -EBUSY,
	    "volume max claims reached: volume v (single-node-writer) is written by alloc a on "
	    "node n" },
	{ W, CLAIM_READ, CLAIM_READ, -EBUSY,
	    "volume max claims reached: volume v (single-node-writer) is read by alloc a on node "
	    "n" },
	{ W, CLAIM_READ, CLAIM_WRITE, 0, "" },
	{ MR, CLAIM_READ, CLAIM_READ, 0, "" },
	{ MR, CLAIM_READ, CLAIM_WRITE, -EAGAIN,
	    "volume is currently unschedulable: volume v cannot be written with access mode "
	    "multi-node-reader-only" },
	{ MSW, CLAIM_WRITE, CLAIM_WRITE, -EBUSY,
	    "volume max claims reached: volume v (multi-node-single-writer) is written by alloc "
	    "a on node n" },
	{ MSW, CLAIM_WRITE, CLAIM_READ, 0, "" },
	{ MMW, CLAIM_WRITE, CLAIM_WRITE, 0, "" },
	{ MMW, CLAIM_WRITE, CLAIM_READ, 0, "" },
};

START_TEST(slots_by_access_mode)
{
	struct csi_volume before;

	ck_assert_msg(claim("a", slots[_i].held, slots[_i].access, CLAIM_TAKEN) == 0, "%s", e.msg);
	csi_volume_copy(&vol, &before);
	ck_assert_int_eq(claim("b", slots[_i].asked, slots[_i].access, CLAIM_TAKEN), slots[_i].r);
	ck_assert_str_eq(e.msg, slots[_i].message);
	if (slots[_i].r < 0)
		ck_assert(model_equal(&csi_volume_type, &vol, &before));
	else
		ck_assert_ptr_nonnull(volume_find_claim(&vol, "b"));
	csi_volume_done(&before);
}
END_TEST

START_TEST(a_refused_claim_says_since_when)
{
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
	volume_held_claim(&vol, "a")->since = 1700000000123456789;
	ck_assert_int_eq(claim("b", CLAIM_WRITE, W, CLAIM_TAKEN), -EBUSY);
	ck_assert_str_eq(e.msg,
	    "volume max claims reached: volume v (single-node-writer) is written by alloc a on "
	    "node n since 2023-11-14T22:13:20Z");
}
END_TEST

/* Claims of one node share its attachment. */
START_TEST(an_attachment_is_shared)
{
	struct csi_claim *a,
	    writer = { .alloc_id = (char *)"c", .node_id = (char *)"n", .mode = CLAIM_WRITE };

	ck_assert_int_eq(claim("a", CLAIM_READ, MMW, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("b", CLAIM_READ, MMW, CLAIM_TAKEN), 0);
	ck_assert_ptr_null(volume_other_attachment(&vol, volume_held_claim(&vol, "b")));
	a = volume_held_claim(&vol, "a");
	a->attach = CLAIM_ATTACHING;
	ck_assert_ptr_eq(volume_other_attachment(&vol, volume_held_claim(&vol, "b")), a);
	ck_assert_ptr_null(volume_other_attachment(&vol, a));
	ck_assert_int_eq(volume_attach_check(&vol, &writer, &e), 0);
	a->attach_read_only = true;
	ck_assert_int_eq(volume_attach_check(&vol, volume_held_claim(&vol, "b"), &e), 0);
	ck_assert_int_eq(volume_attach_check(&vol, &writer, &e), -EBUSY);
	ck_assert_str_eq(e.msg,
	    "volume max claims reached: volume v cannot be written while it is attached read-only "
	    "for alloc a on node n");
	writer.node_id = (char *)"other";
	ck_assert_int_eq(volume_attach_check(&vol, &writer, &e), 0);
}
END_TEST

START_TEST(the_same_claim_twice_is_one)
{
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
	ck_assert_uint_eq(vol.write_claims.n, 1);
	ck_assert(volume_in_use(&vol));
}
END_TEST

START_TEST(a_reader_becomes_the_writer)
{
	ck_assert_int_eq(claim("a", CLAIM_READ, W, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
	ck_assert_uint_eq(vol.read_claims.n, 0);
	ck_assert_uint_eq(vol.write_claims.n, 1);
}
END_TEST

START_TEST(released_step_by_step)
{
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_UNPUBLISHING), 0);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_NODE_DETACHED), 0);
	ck_assert_uint_eq(vol.past_claims.n, 1);
	ck_assert_int_eq(vol.past_claims.v[0].value.state, CLAIM_NODE_DETACHED);
	ck_assert_int_eq(claim("b", CLAIM_WRITE, W, CLAIM_TAKEN), -EBUSY);
	ck_assert_int_eq(vol.access_mode, W);
	ck_assert_int_eq(volume_claim(&vol,
			     &(struct csi_claim){ .alloc_id = vol.write_claims.v[0].key,
				 .state = CLAIM_READY_TO_FREE },
			     &e),
	    0);
	ck_assert(!volume_in_use(&vol));
	ck_assert_uint_eq(vol.past_claims.n, 0);
	ck_assert_int_eq(vol.access_mode, CSI_ACCESS_NONE);
	ck_assert_int_eq(vol.attachment_mode, CSI_ATTACHMENT_NONE);
	ck_assert_int_eq(claim("b", CLAIM_WRITE, W, CLAIM_TAKEN), 0);
}
END_TEST

START_TEST(a_release_waits_for_all_allocs)
{
	ck_assert_int_eq(claim("a", CLAIM_READ, MR, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_READ, MR, CLAIM_UNPUBLISHING), 0);
	ck_assert_int_eq(claim("b", CLAIM_READ, MR, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_GC, MR, CLAIM_TAKEN), 0);
	ck_assert_uint_eq(vol.past_claims.n, 1);
	ck_assert_uint_eq(vol.read_claims.n, 2);
	ck_assert_int_eq(claim("a", CLAIM_READ, MR, CLAIM_READY_TO_FREE), 0);
	ck_assert_int_eq(vol.access_mode, MR);
}
END_TEST

START_TEST(taking_otherwise_ends_the_release)
{
	ck_assert_int_eq(claim("a", CLAIM_READ, MMW, CLAIM_TAKEN), 0);
	ck_assert_int_eq(claim("a", CLAIM_READ, MMW, CLAIM_UNPUBLISHING), 0);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, MMW, CLAIM_TAKEN), 0);
	ck_assert_uint_eq(vol.past_claims.n, 0);
}
END_TEST

START_TEST(a_reader_mode_does_not_write_a_free_volume)
{
	ck_assert_int_eq(claim("a", CLAIM_WRITE, MR, CLAIM_TAKEN), -EAGAIN);
	ck_assert(!volume_in_use(&vol));
}
END_TEST

START_TEST(attachment_cannot_change)
{
	struct csi_claim c = { .alloc_id = (char *)"b",
		.mode = CLAIM_READ,
		.access_mode = MR,
		.attachment_mode = CSI_BLOCK_DEVICE };

	ck_assert_int_eq(claim("a", CLAIM_READ, MR, CLAIM_TAKEN), 0);
	ck_assert_int_eq(volume_claim(&vol, &c, &e), -EINVAL);
	ck_assert_str_eq(e.msg,
	    "cannot change attachment mode of claimed volume: volume v is attached as "
	    "file-system, not block-device");
}
END_TEST

START_TEST(a_mode_it_was_not_made_for)
{
	while (vol.requested_capabilities.n > 1)
		list_remove(csi_capability, &vol.requested_capabilities, 1);
	ck_assert_int_eq(claim("a", CLAIM_WRITE, W, CLAIM_TAKEN), -EINVAL);
	ck_assert_str_eq(e.msg, "volume v has no capability for file-system, single-node-writer");
}
END_TEST

START_TEST(without_capabilities_the_first_claim_makes_one)
{
	while (vol.requested_capabilities.n > 0)
		list_remove(csi_capability, &vol.requested_capabilities, 0);
	ck_assert_int_eq(claim("a", CLAIM_READ, R, CLAIM_TAKEN), 0);
	ck_assert_uint_eq(vol.requested_capabilities.n, 1);
	ck_assert_int_eq(vol.requested_capabilities.v[0].access_mode, R);
}
END_TEST

START_TEST(unschedulable_says_why)
{
	vol.nodes_expected = 1;
	vol.schedulable = _i != 0;
	vol.resource_exhausted = _i;
	ck_assert_int_eq(claim("a", CLAIM_READ, MR, CLAIM_TAKEN), -EAGAIN);
	ck_assert_str_eq(e.msg,
	    _i == 0
		? "volume is currently unschedulable: volume v: plugin p has 0 healthy nodes of 1"
		: "volume is currently unschedulable: volume v: the plugin says that a resource is "
		  "exhausted");
	ck_assert(!volume_in_use(&vol));
}
END_TEST

/* Other mount options give another usage of the volume. */
START_TEST(usage_tells_options_apart)
{
	char *noatime[] = { (char *)"noatime" }, *two[] = { (char *)"noatime", (char *)"ro" };
	char *joined[] = { (char *)"noatimero" };
	const struct mount_options own = { .mount_flags = { noatime, 1 } },
				   same = { .mount_flags = { noatime, 1 } };
	const struct mount_options other = { .mount_flags = { two, 2 } },
				   glued = { .mount_flags = { joined, 1 } };
	const struct mount_options type_only = { .fs_type = (char *)"ext4" };
	const struct mount_options cleared = { .mount_flags = { noatime, 0 } };
	const struct mount_options *requests[] = { &other, &glued, &type_only, &cleared };
	char plain[USAGE_SIZE], usage[5][USAGE_SIZE];
	size_t i, k;

	csi_usage(plain, false, CSI_FILE_SYSTEM, W, &own, NULL);
	ck_assert_str_eq(plain, "rw-file-system-single-node-writer");
	csi_usage(plain, true, CSI_BLOCK_DEVICE, MR, NULL, NULL);
	ck_assert_str_eq(plain, "ro-block-device-multi-node-reader-only");
	csi_usage(usage[0], false, CSI_FILE_SYSTEM, W, &own, &same);
	ck_assert_str_eq(usage[0], "rw-file-system-single-node-writer");
	for (i = 0; i < 4; i++) {
		csi_usage(usage[i + 1], false, CSI_FILE_SYSTEM, W, &own, requests[i]);
		for (k = 0; k <= i; k++)
			ck_assert_str_ne(usage[i + 1], usage[k]);
	}
}
END_TEST

START_TEST(a_controller_counts_only_for_attaching)
{
	cleanup_done(csi_plugin) struct csi_plugin plugin;
	struct csi_info *info;

	csi_plugin_init(&plugin);
	info = map_put(csi_info, &plugin.nodes, "n");
	info->healthy = true;
	info = map_put(csi_info, &plugin.controllers, "n");
	info->requires_controller_plugin = true;
	info->controller_info = csi_controller_info_new();
	csi_plugin_count(&plugin);
	ck_assert_int_eq(plugin.nodes_healthy, 1);
	ck_assert_int_eq(plugin.controllers_healthy, 0);
	ck_assert_int_eq(plugin.controllers_expected, 1);
	ck_assert(plugin.controller_required);
	ck_assert(!csi_plugin_needs_attach(&plugin));
	info->controller_info->supports_attach_detach = true;
	ck_assert(csi_plugin_needs_attach(&plugin));
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_checked_fixture(tc, set_up, tear_down);
	tcase_add_loop_test(tc, slots_by_access_mode, 0, ELEMENTSOF(slots));
	tcase_add_test(tc, a_refused_claim_says_since_when);
	tcase_add_test(tc, an_attachment_is_shared);
	tcase_add_test(tc, the_same_claim_twice_is_one);
	tcase_add_test(tc, a_reader_becomes_the_writer);
	tcase_add_test(tc, released_step_by_step);
	tcase_add_test(tc, a_release_waits_for_all_allocs);
	tcase_add_test(tc, taking_otherwise_ends_the_release);
	tcase_add_test(tc, a_reader_mode_does_not_write_a_free_volume);
	tcase_add_test(tc, attachment_cannot_change);
	tcase_add_test(tc, a_mode_it_was_not_made_for);
	tcase_add_test(tc, without_capabilities_the_first_claim_makes_one);
	tcase_add_loop_test(tc, unschedulable_says_why, 0, 2);
	tcase_add_test(tc, usage_tells_options_apart);
	tcase_add_test(tc, a_controller_counts_only_for_attaching);
}

int
main(void)
{
	return unit_run("model_claims", add);
}
