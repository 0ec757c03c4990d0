// SPDX-License-Identifier: Apache-2.0
/* test_volume_judge.c: what disagrees between a plugin's list and a node, and the places of volumes
 * from paths. */
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/id.h"
#include "supervisor/volume/volume_judge.h"
#include "supervisor/volume/volume_place.h"
#include "tests/unit/unit.h"

static struct csi_controller_info controller;
static struct rpc_csi_entry entry;
static struct volume_evidence evidence;

/* A volume that is mounted here and attached to this node, in a good condition. */
static void
begin(void)
{
	controller = (struct csi_controller_info){ .supports_attach_detach = true,
		.supports_list_volumes_attached_nodes = true };
	rpc_csi_entry_init(&entry);
	str_set(&entry.external_id, "v-1");
	strings_add(&entry.published_external_node_ids, "node-1");
	evidence = (struct volume_evidence){ .plugin = "p",
		.external_id = "v-1",
		.controller = &controller,
		.node = "node-1",
		.mounted = true,
		.entry = &entry };
}

/* Compares the kinds of all disagreements, joined by spaces; frees the entry. */
static void
check_kinds(const char *wanted)
{
	struct volume_verdict v;
	char found[200] = "";

	for (unsigned i = 0; volume_judge(&evidence, i, &v); i++) {
		(void)strcat(found, *found ? " " : "");
		(void)strcat(found, v.kind);
		ck_assert(*v.text && *v.advice);
	}
	ck_assert_str_eq(found, wanted);
	rpc_csi_entry_done(&entry);
}

START_TEST(a_volume_that_is_well)
{
	begin();
	check_kinds("");
}
END_TEST

START_TEST(a_volume_that_the_plugin_does_not_list)
{
	begin();
	evidence.entry = NULL;
	check_kinds("unknown-to-plugin");
}
END_TEST

START_TEST(an_abnormal_volume_that_is_not_attached)
{
	begin();
	entry.is_abnormal = true;
	str_set(&entry.status, "broken");
	evidence.node = "node-2";
	check_kinds("condition not-attached-at-plugin");
	begin();
	entry.is_abnormal = evidence.condition_told = true;
	check_kinds("");
}
END_TEST

/* A plugin that does not attach, or does not list nodes, says nothing by an empty list of nodes;
 * nor if the volume is not mounted, or if the node's id is not known yet. */
START_TEST(an_attachment_that_is_not_known)
{
	for (int i = 0; i < 4; i++) {
		begin();
		strings_done(&entry.published_external_node_ids);
		entry.published_external_node_ids = (struct strings){ 0 };
		controller.supports_attach_detach = i != 0;
		controller.supports_list_volumes_attached_nodes = i != 1;
		evidence.mounted = i != 2;
		evidence.node = i != 3 ? "node-1" : "";
		check_kinds("");
	}
}
END_TEST

START_TEST(an_entry_of_a_list)
{
	struct rpc_csi_rep list;

	rpc_csi_rep_init(&list);
	ck_assert_ptr_null(volume_entry_find(&list, "b"));
	for (const char *id = "dbac"; *id; id++)
		str_setf(&list_add(rpc_csi_entry, &list.entries)->external_id, "%c", *id);
	volume_entries_sort(&list);
	for (const char *id = "a\0b\0c\0d\0"; *id; id += 2)
		ck_assert_str_eq(volume_entry_find(&list, id)->external_id, id);
	ck_assert_ptr_null(volume_entry_find(&list, "e"));
	rpc_csi_rep_done(&list);
}
END_TEST

#define ALLOC "11111111-2222-3333-4444-555555555555"

START_TEST(the_place_of_a_path)
{
	struct volume_place place;
	char alloc[ID_UUID_SIZE];
	bool staging = false;

	ck_assert(volume_place_parse("csi/node/hp/staging/v/rw", &place, &staging));
	ck_assert(staging && place.kind == PLUGIN_NODE);
	ck_assert(id_is_zero(&place.alloc));
	ck_assert(volume_place_parse("csi/monolith/hp/per-alloc/" ALLOC "/v/rw", &place, &staging));
	id_to_uuid(&place.alloc, alloc);
	ck_assert(!staging && strcmp(alloc, ALLOC) == 0);
	ck_assert_str_eq(place.plugin, "hp");
	ck_assert_str_eq(place.volume, "v");
	ck_assert_str_eq(place.usage, "rw");
}
END_TEST

START_TEST(paths_of_no_volume)
{
	static const char *const paths[] = { "", "csi", "csi/node", "csi/node/hp", "csi/sock/hp/v",
		"csi/node/hp/staging/v", "csi/node/hp/staging/v/rw/more",
		"csi/node/hp/per-alloc/v/rw", "csi/node/hp/per-alloc/" ALLOC "/v",
		"csi/node/hp/other/v/rw", "csix/node/hp/staging/v/rw", "csi/node//staging/v/rw" };
	struct volume_place place;
	bool staging;

	for (size_t i = 0; i < ELEMENTSOF(paths); i++)
		ck_assert_msg(!volume_place_parse(paths[i], &place, &staging), "%s", paths[i]);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_volume_that_is_well);
	tcase_add_test(tc, a_volume_that_the_plugin_does_not_list);
	tcase_add_test(tc, an_abnormal_volume_that_is_not_attached);
	tcase_add_test(tc, an_attachment_that_is_not_known);
	tcase_add_test(tc, an_entry_of_a_list);
	tcase_add_test(tc, the_place_of_a_path);
	tcase_add_test(tc, paths_of_no_volume);
}

int
main(void)
{
	return unit_run("volume_judge", add);
}
