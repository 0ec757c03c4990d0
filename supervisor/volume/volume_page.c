// SPDX-License-Identifier: Apache-2.0
/* volume_page.c: what this node knows about one volume. Runs in: supervisor. */
#include "supervisor/volume/volume_page.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/volume/mount.h"
#include "supervisor/volume/plugins.h"
#include "supervisor/volume/volume_judge.h"
#include "supervisor/volume/volume_place.h"
#include "supervisor/volume/volume_repair.h"
#include "supervisor/volume/volume_stats.h"

#define BTRFS_FS_TYPE                                                                              \
	0x9123683e /* statfs(2): its devices in mountinfo are not those of stat(2)                 \
		    */

/* The page that is being made. */
struct making {
	struct sup *sup;
	const struct volume_facts *facts;
	const struct volume_subject *s;
	char name[NAME_BYTES_MAX + 1]; /* of the volume in paths */
	json_t *page;
	unsigned mounted; /* rows with this volume published */
};

const char *
volume_page_text(const json_t *object, const char *name)
{
	const char *text = json_string_value(json_object_get(object, name));

	return text ? text : "";
}

json_t *
volume_page_list(const json_t *page, const char *name)
{
	return json_object_get(page, name);
}

json_t *
volume_page_string(const char *text)
{
	json_t *json = json_string(text ? text : "");

	return json ? json : json_string("(not printable)");
}

void
volume_page_problem(json_t *page, const char *kind, const char *object, bool is_fixable,
    const char *advice, const char *fmt, ...)
{
	cleanup_free char *text = NULL;
	va_list ap;

	va_start(ap, fmt);
	text = mem_vprintf(fmt, ap);
	va_end(ap);
	(void)json_array_append_new(volume_page_list(page, "Problems"),
	    json_pack("{s:s, s:o, s:o, s:s, s:b}", "Kind", kind, "Object",
		volume_page_string(object), "Text", volume_page_string(text), "Advice", advice,
		"Fixable", is_fixable));
}

/* --- rows --- */

static const char *
step_name(const struct mount *m)
{
	switch (m->step) {
	case MOUNT_PUBLISHED:
		return m->unmounting ? "unmounting" : "published";
	case MOUNT_UNPUBLISHING:
		return "unpublishing";
	case MOUNT_UNSTAGING:
		return "unstaging";
	default:
		return m->begun ? "mounting" : "planned";
	}
}

static const char *
status_of(const struct sup_alloc *sa)
{
	return sa ? client_status_names[sa->a.client_status] : "unknown";
}

static void
check_unmounting(struct making *k, const struct mount *m, const struct sup_alloc *sa)
{
	const char *alloc = m->rec.alloc;

	if (!sa && k->sup->allocs->n_unreadable > 0)
		return;
	if (m->unmounting && m->trouble.tries > 0)
		volume_page_problem(k->page, "unmount-fails", alloc, true,
		    "correct what the plugin complains about; -fix tries again at once",
		    "unmounting it from allocation %.8s fails: %s; tried %u times", alloc,
		    m->trouble.error, m->trouble.tries);
	else if (!m->unmounting && !sa)
		volume_page_problem(k->page, "mount-without-allocation", alloc, true,
		    "-fix unmounts it",
		    "it is %s for allocation %.8s, which does not exist any more", step_name(m),
		    alloc);
	else if (!m->unmounting && !m->cb && alloc_client_terminal(&sa->a))
		volume_page_problem(k->page, "mount-of-ended-allocation", alloc, true,
		    "-fix unmounts it", "it is %s for allocation %.8s, which has ended",
		    step_name(m), alloc);
}

/* The device in the proof is that of stat(2) on the mount that was published. */
static bool
is_other_device(const struct mount_record *rec, const char *found)
{
	char device[24];

	(void)snprintf(
	    device, sizeof device, "%u:%u", (unsigned)rec->dev_major, (unsigned)rec->dev_minor);
	return rec->mnt_id && rec->fs_type != BTRFS_FS_TYPE && strcmp(device, found) != 0;
}

/* Compares a row that says "published" with mountinfo. */
static void
check_published(struct making *k, const struct mount *m, unsigned n, const char *device)
{
	char path[MOUNT_PATH_SIZE];

	mount_path(m, false, path);
	if (n == 0)
		volume_page_problem(k->page, "not-mounted", path, true, "-fix publishes it again",
		    "it was published for allocation %.8s, but nothing is mounted at %s/%s any "
		    "more",
		    m->rec.alloc, k->sup->args.data_dir, path);
	else if (is_other_device(&m->rec, device))
		volume_page_problem(k->page, "other-mount", path, false,
		    "find out who mounted it, and unmount it by hand; drover publishes the volume "
		    "again if it is gone",
		    "what is mounted at %s/%s for allocation %.8s is device %s, not device %u:%u "
		    "that the plugin published",
		    k->sup->args.data_dir, path, m->rec.alloc, device, (unsigned)m->rec.dev_major,
		    (unsigned)m->rec.dev_minor);
	else if (n > 1)
		volume_page_problem(k->page, "mounted-more-than-once", path, false,
		    "unmount the upper ones by hand: a task sees the uppermost one",
		    "%u mounts are at %s/%s, one over the other, for allocation %.8s", n,
		    k->sup->args.data_dir, path, m->rec.alloc);
}

static json_t *
row_to_json(struct making *k, const struct mount *m, const struct sup_alloc *sa, unsigned targets,
    unsigned stagings)
{
	const struct volume_trouble none = { 0 }, *t = m->trouble.tries ? &m->trouble : &none;
	char target[MOUNT_PATH_SIZE], staging[MOUNT_PATH_SIZE], waits[ERR_MSG_SIZE + 256] = "";

	mount_path(m, false, target);
	mount_path(m, true, staging);
	if (sa)
		(void)volume_say_pending(k->sup, sa, m->rec.alias, waits, sizeof waits);
	return json_pack("{s:s, s:s, s:s, s:s, s:b, s:b, s:b, s:s, s:i, s:s, s:i, s:o, s:o, s:i, "
			 "s:I, s:I}",
	    "AllocationID", m->rec.alloc, "Name", str(m->rec.alias), "AllocStatus", status_of(sa),
	    "Step", step_name(m), "ReadOnly", m->rec.read_only, "Block", m->rec.block,
	    "EffectUnknown", m->rec.unsure, "TargetPath", target, "TargetMounts", (int)targets,
	    "StagingPath", m->rec.stages ? staging : "", "StagingMounts", (int)stagings, "WaitsFor",
	    volume_page_string(waits), "LastError", volume_page_string(t->error), "Tries",
	    (int)t->tries, "Since", (json_int_t)t->since_ns, "NextTry", (json_int_t)t->next_ns);
}

/* A task runs, so the volume was mounted before. */
static void
check_mounting(struct making *k, const struct mount *m, const struct sup_alloc *sa)
{
	char path[MOUNT_PATH_SIZE],
	    waits[ERR_MSG_SIZE + 256] = "drover tries again within a minute";

	if (m->unmounting || !m->begun || m->step != MOUNT_MOUNTING ||
	    sa->a.client_status != CLIENT_RUNNING)
		return;
	mount_path(m, false, path);
	(void)volume_say_pending(k->sup, sa, m->rec.alias, waits, sizeof waits);
	volume_page_problem(k->page, "not-mounted", path, true, "-fix publishes it again",
	    "it was unmounted by somebody else, and is not yet mounted again for allocation %.8s: "
	    "%s",
	    m->rec.alloc, waits);
}

static void
add_row(struct making *k, const struct mount *m)
{
	const struct sup_alloc *sa = alloc_find(k->sup, &m->rec.alloc_id);
	const char *device = "", *ignored;
	unsigned targets, stagings;
	char path[MOUNT_PATH_SIZE];

	mount_path(m, false, path);
	targets = volume_facts_count(k->facts, path, &device);
	mount_path(m, true, path);
	stagings = m->rec.stages ? volume_facts_count(k->facts, path, &ignored) : 0;
	(void)json_array_append_new(
	    volume_page_list(k->page, "Mounts"), row_to_json(k, m, sa, targets, stagings));
	check_unmounting(k, m, sa);
	if (sa)
		check_mounting(k, m, sa);
	if (m->step != MOUNT_PUBLISHED || m->unmounting)
		return;
	k->mounted++;
	/* A block device may be no mount. */
	if (!m->rec.block && sa && !volume_facts_error(k->facts))
		check_published(k, m, targets, device);
}

static bool
is_of_volume(const struct mount *m, const char *namespace, const char *id)
{
	return m->step != MOUNT_GONE && str_eq(m->rec.namespace, namespace) &&
	       str_eq(m->rec.volume_id, id);
}

/* --- paths without a row --- */

static void
add_orphan(struct making *k, const struct volume_path *at)
{
	bool fixable = volume_mount_is_orphan(k->sup, at->path);

	(void)json_array_append_new(
	    volume_page_list(k->page, "MountsWithoutRow"), volume_page_string(at->path));
	volume_page_problem(k->page, "mount-without-row", at->path, fixable,
	    fixable ? "-fix unmounts it"
		    : "it stays, because an allocation on this node may use it: stop that "
		      "allocation",
	    "%s/%s is mounted, but drover has no record of it", k->sup->args.data_dir, at->path);
}

static void
add_left_dir(struct making *k, const struct volume_path *at)
{
	(void)json_array_append_new(
	    volume_page_list(k->page, "DirectoriesWithoutRow"), volume_page_string(at->path));
	volume_page_problem(k->page, "directory-without-row", at->path, true,
	    "-fix removes it if it is empty",
	    "the %s directory %s/%s exists, but drover has no record of it",
	    at->staging ? "staging" : "target", k->sup->args.data_dir, at->path);
}

/* Adds the paths of the volume with this name. */
static void
add_unexplained(struct making *k, const char *name)
{
	const struct volume_path *at;
	const char *ignored;
	size_t i = volume_facts_unexplained_from(k->facts, name);

	for (; (at = volume_facts_unexplained(k->facts, i)) && strcmp(at->place.volume, name) == 0;
	     i++) {
		if (strcmp(at->place.plugin, k->s->plugin) != 0)
			continue;
		if (at->mounted)
			add_orphan(k, at);
		else if (volume_facts_count(k->facts, at->path, &ignored) == 0)
			add_left_dir(k, at);
	}
}

/* --- the plugin --- */

struct instances {
	unsigned n, healthy;
	const char *why; /* one is not healthy */
	const struct csi_info *node, *controller;
};

static void
count_instances(struct sup *sup, const char *plugin, struct instances *ret)
{
	*ret = (struct instances){ 0 };
	for (struct plugin *p = plugin_next(sup, NULL); p; p = plugin_next(sup, p)) {
		const struct csi_info *node = plugin_node_info(p);
		const struct csi_info *controller = plugin_controller_info(p);
		const struct csi_info *info = node ? node : controller;

		if (strcmp(plugin_id(p), plugin) != 0)
			continue;
		ret->n++;
		ret->healthy += plugin_is_healthy(p);
		if (!plugin_is_healthy(p) && info)
			ret->why = str(info->health_description);
		if (node && node->node_info && (!ret->node || plugin_is_healthy(p)))
			ret->node = node;
		if (controller && controller->controller_info &&
		    (!ret->controller || plugin_is_healthy(p)))
			ret->controller = controller;
	}
}

static void
check_instances(struct making *k, const struct instances *in)
{
	const char *plugin = k->s->plugin;

	if (in->n == 0)
		volume_page_problem(k->page, "plugin-missing", plugin, false,
		    "run the job of the plugin on this node, or name its socket in the "
		    "configuration",
		    "plugin %s does not run on this node", plugin);
	else if (in->healthy == 0)
		volume_page_problem(k->page, "plugin-not-healthy", plugin, false,
		    "see `drover plugin status` and the logs of the plugin's task",
		    "plugin %s is not healthy: %s", plugin, in->why ? in->why : "no answer");
}

static void
check_entry(struct making *k, const struct instances *in, const struct rpc_csi_entry *entry)
{
	const struct volume_evidence ev = { .plugin = k->s->plugin,
		.external_id = k->s->external_id,
		.controller = in->controller->controller_info,
		.node = in->node ? str(in->node->node_info->id) : "",
		.mounted = k->mounted > 0,
		.entry = entry };
	struct volume_verdict v;

	for (unsigned i = 0; volume_judge(&ev, i, &v); i++)
		volume_page_problem(
		    k->page, v.kind, k->s->external_id, false, v.advice, "%s", v.text);
}

static void
add_entry(json_t *plugin, const struct instances *in, const struct rpc_csi_entry *entry)
{
	const struct csi_controller_info *c = in->controller->controller_info;
	json_t *nodes = json_array();

	for (size_t i = 0; entry && i < entry->published_external_node_ids.n; i++)
		(void)json_array_append_new(
		    nodes, volume_page_string(entry->published_external_node_ids.v[i]));
	(void)json_object_set_new(plugin, "Listed", json_boolean(entry != NULL));
	(void)json_object_set_new(plugin, "PublishedNodes",
	    entry && c->supports_list_volumes_attached_nodes ? json_incref(nodes) : json_null());
	(void)json_object_set_new(plugin, "Condition",
	    entry && c->supports_condition ? json_pack("{s:b, s:o}", "Abnormal", entry->is_abnormal,
						 "Message", volume_page_string(entry->status))
					   : json_null());
	json_decref(nodes);
}

/* What the node half of the plugin has reported last. The list is newer, if there is one. */
static void
add_usage(struct making *k)
{
	const struct volume_here *here = volume_stats_of(k->sup, k->s->namespace, k->s->id);
	const json_t *listed = json_object_get(json_object_get(k->page, "Plugin"), "Listed");

	if (!here)
		return;
	(void)json_object_set_new(k->page, "Usage", model_to_json(&volume_here_type, here, 0));
	if (here->condition == CONDITION_ABNORMAL && !json_is_true(listed))
		volume_page_problem(k->page, "condition", k->s->external_id, false,
		    "see the plugin's documentation for what it reports",
		    "plugin %s reports that the volume is abnormal: %s", k->s->plugin,
		    str(here->condition_message));
}

/* "Listed" is null if the plugin could not be asked, for the reason in "NotListed". */
static void
add_plugin(struct making *k)
{
	const struct rpc_csi_rep *list;
	const char *why;
	struct instances in;
	json_t *plugin;

	count_instances(k->sup, k->s->plugin, &in);
	list = volume_facts_listing(k->facts, k->s->plugin, &why);
	plugin = json_pack("{s:o, s:i, s:i, s:o, s:o, s:b, s:n, s:o, s:n, s:n}", "ID",
	    volume_page_string(k->s->plugin), "Instances", (int)in.n, "Healthy", (int)in.healthy,
	    "Cause", volume_page_string(in.healthy < in.n ? in.why : ""), "NodeID",
	    volume_page_string(in.node ? in.node->node_info->id : ""), "Attaches",
	    in.controller && in.controller->controller_info->supports_attach_detach, "Listed",
	    "NotListed", volume_page_string(list && in.controller ? "" : why), "PublishedNodes",
	    "Condition");
	(void)json_object_set_new(k->page, "Plugin", plugin);
	check_instances(k, &in);
	if (!list || !in.controller || !*k->s->external_id)
		return;
	add_entry(plugin, &in, volume_entry_find(list, k->s->external_id));
	check_entry(k, &in, volume_entry_find(list, k->s->external_id));
}

/* --- pages --- */

json_t *
volume_page_make(struct sup *sup, const struct volume_facts *f, const struct volume_subject *s)
{
	struct making k = { .sup = sup, .facts = f, .s = s };
	const char *error = volume_facts_error(f);
	struct mount *m = NULL;

	mount_record_name(k.name, s->namespace, s->id);
	k.page = json_pack("{s:o, s:s, s:o, s:o, s:n, s:[], s:[], s:[], s:n, s:[]}", "ID",
	    volume_page_string(s->id), "Namespace", s->namespace, "PluginID",
	    volume_page_string(s->plugin), "ExternalID", volume_page_string(s->external_id),
	    "Claims", "Mounts", "MountsWithoutRow", "DirectoriesWithoutRow", "Usage", "Problems");
	if (error)
		volume_page_problem(
		    k.page, "unknown", "", false, "see the agent's log", "%s", error);
	while ((m = mount_next_of_id(sup, s->namespace, s->id, m)))
		if (m->step != MOUNT_GONE)
			add_row(&k, m);
	add_unexplained(&k, k.name);
	/* The id of an unknown volume is a component of a path. */
	if (!*s->external_id && strcmp(s->id, k.name) != 0)
		add_unexplained(&k, s->id);
	add_plugin(&k);
	add_usage(&k);
	return k.page;
}

/* Returns false if the key was noted before. */
static bool
note_key(json_t *seen, const char *a, const char *b)
{
	cleanup_free char *key = mem_printf("%s/%s", a, b);

	return !json_object_get(seen, key) && json_object_set_new(seen, key, json_true()) == 0;
}

/* Notes that the volume and its places have a page. Returns false if the volume had one already. */
static bool
note_page(json_t *seen, json_t *places, const struct volume_subject *s)
{
	char name[NAME_BYTES_MAX + 1];

	mount_record_name(name, s->namespace, s->id);
	(void)note_key(places, s->plugin, name);
	if (!*s->external_id)
		(void)note_key(places, s->plugin, s->id);
	return note_key(seen, s->namespace, s->id);
}

/* The id of an unknown volume is what its path says. */
static void
add_page_of_path(struct sup *sup, const struct volume_facts *f, const struct volume_path *at,
    json_t *places, json_t *pages)
{
	const struct volume_subject s = { .namespace = "default",
		.id = at->place.volume,
		.plugin = at->place.plugin,
		.external_id = "" };

	if (note_key(places, s.plugin, s.id))
		(void)json_array_append_new(pages, volume_page_make(sup, f, &s));
}

void
volume_page_add_others(struct sup *sup, const struct volume_facts *f, json_t *pages)
{
	json_t *seen = json_object(), *places = json_object(), *page;
	const struct volume_path *at;
	struct mount *m;
	size_t n;

	json_array_foreach (pages, n, page) {
		const struct volume_subject s = { .namespace = volume_page_text(page, "Namespace"),
			.id = volume_page_text(page, "ID"),
			.plugin = volume_page_text(page, "PluginID"),
			.external_id = volume_page_text(page, "ExternalID") };

		(void)note_page(seen, places, &s);
	}
	LIST_FOREACH (m, &sup->volumes->mounts, link) {
		const struct volume_subject s = { .namespace = m->rec.namespace,
			.id = m->rec.volume_id,
			.plugin = m->rec.plugin,
			.external_id = str(m->rec.external_id) };

		if (m->step != MOUNT_GONE && note_page(seen, places, &s))
			(void)json_array_append_new(pages, volume_page_make(sup, f, &s));
	}
	for (size_t i = 0; (at = volume_facts_unexplained(f, i)); i++)
		add_page_of_path(sup, f, at, places, pages);
	json_decref(seen);
	json_decref(places);
}

void
volume_page_plugins(struct sup *sup, struct strings *ret)
{
	struct mount *m;

	LIST_FOREACH (m, &sup->volumes->mounts, link)
		if (!strings_has(ret, m->rec.plugin))
			strings_add(ret, m->rec.plugin);
}

/* --- repairs --- */

static void
on_dir_removed(struct sup *sup, void *arg, int r, const void *msg, int fd, const struct err *e)
{
	/* The next comparison shows whether the problem is still there. */
}

static bool
remove_dir(struct sup *sup, const char *path)
{
	struct file_volume_dir_remove_req req = { 0 };
	bool staging;

	if (!volume_place_parse(path, &req.place, &staging) ||
	    mount_find_place(sup, &req.place, staging))
		return false;
	(void)file_call_volume_dir_remove(sup, &req, on_dir_removed, NULL);
	return true;
}

/* Unmounts the volume from this alloc, from the first step on. A call that is out goes on. */
static bool
undo_mount(struct sup *sup, const json_t *page, const char *alloc)
{
	struct mount *m, *next;

	LIST_FOREACH_SAFE (m, &sup->volumes->mounts, link, next)
		if (is_of_volume(
			m, volume_page_text(page, "Namespace"), volume_page_text(page, "ID")) &&
		    strcmp(m->rec.alloc, alloc) == 0 && !m->settling)
			mount_undo(m);
	return true;
}

bool
volume_page_fix(struct sup *sup, const json_t *page, const json_t *problem)
{
	const char *kind = volume_page_text(problem, "Kind");
	const char *object = volume_page_text(problem, "Object");

	if (strcmp(kind, "not-mounted") == 0 || strcmp(kind, "mount-without-row") == 0) {
		volume_repair_now(sup);
		return true;
	}
	if (strcmp(kind, "directory-without-row") == 0)
		return remove_dir(sup, object);
	if (strcmp(kind, "unmount-fails") == 0 || strcmp(kind, "mount-without-allocation") == 0 ||
	    strcmp(kind, "mount-of-ended-allocation") == 0)
		return undo_mount(sup, page, object);
	return false;
}
