// SPDX-License-Identifier: Apache-2.0
/* template_values.c: follows what the templates of a task ask for. Runs in: supervisor. */
#include "supervisor/alloc/template_values.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/duration.h"
#include "common/hash.h"
#include "common/list.h"
#include "common/mem.h"
#include "proto/template_need.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_file_read.h"
#include "supervisor/source/source.h"

/* How often a file is looked at: often while it is missing, otherwise seldom. */
#define FILE_SOON_USEC   1000000
#define FILE_SELDOM_USEC 10000000
/* The look at a file that was read is its change time: writing, removing or replacing the file
 * changes it. Each LOOKS_MAX-th look follows the path again, in which a directory or a link may
 * have changed. */
#define LOOKS_MAX 6
#define KEPT_MAX  1024 /* open files of all tasks; further ones are read at each look */

#define NEEDS_MAX     512 /* of one template */
#define NEED_TEXT_MAX 512 /* bytes of each text of a need */

struct value {
	TAILQ_ENTRY(value) link;
	struct hash_link by_need;
	struct template_values *of;
	bool keep; /* until the next sweep */
	char *need;
	json_t *json;   /* NULL: not known */
	uint64_t count; /* when it changed last */
	char *problem;  /* why it is not known */
	struct source_watch *watch;
	/* of a file */
	const struct rendered *maker; /* the template that writes it; NULL: the task's own file */
	char *path;
	struct task_file_read *read;
	struct sup_timer timer;
	uint64_t wait_usec;
	int fd;             /* of the file that was read last, or -1 */
	int64_t changed_ns; /* its change time then */
	unsigned looks;     /* since then */
};

struct template_values {
	struct task_runner *tr;
	void (*changed)(struct task_runner *tr, const char *need);
	template_find_made_fn *find_made;
	TAILQ_HEAD(, value) all;
	struct hash_table by_need;
	uint64_t count;
};

static unsigned n_kept; /* open files in struct value */

struct template_values *
template_values_new(struct task_runner *tr,
    void (*changed)(struct task_runner *tr, const char *need), template_find_made_fn *find_made)
{
	struct template_values *v = mem_new(struct template_values);

	*v = (struct template_values){ .tr = tr, .changed = changed, .find_made = find_made };
	TAILQ_INIT(&v->all);
	return v;
}

static void
close_file(struct value *one)
{
	n_kept -= one->fd >= 0;
	close_p(&one->fd);
}

static void
free_value(struct value *one)
{
	struct source *source = one->of->tr->ar->sup->source;

	if (one->watch && source) /* NULL: the source was freed first */
		source->ops->unwatch(source, one->watch);
	task_file_read_forget(one->read);
	close_file(one);
	sup_timer_cancel(&one->timer);
	TAILQ_REMOVE(&one->of->all, one, link);
	hash_remove(&one->of->by_need, &one->by_need);
	json_decref(one->json);
	free(one->problem);
	free(one->path);
	free(one->need);
	free(one);
}

void
template_values_free(struct template_values *v)
{
	struct value *one;

	if (!v)
		return;
	while ((one = TAILQ_FIRST(&v->all)))
		free_value(one);
	hash_done(&v->by_need);
	free(v);
}

/* --- needs --- */

/* Each need is followed, at servers too, and events name it. */
static bool
are_needs(const json_t *needs)
{
	json_t *need, *value;
	const char *key;
	size_t i;

	if (!json_is_array(needs) || json_array_size(needs) > NEEDS_MAX)
		return false;
	json_array_foreach (needs, i, need)
		json_object_foreach (need, key, value)
			if (json_string_length(value) > NEED_TEXT_MAX)
				return false;
	return true;
}

json_t *
template_answer_read(const char *map, size_t len, size_t *ret_at)
{
	const char *end = len > 0 ? memchr(map, '\n', len) : NULL;
	json_t *head;

	if (!end)
		return NULL;
	*ret_at = (size_t)(end - map) + 1;
	head = json_loadb(map, (size_t)(end - map), JSON_REJECT_DUPLICATES, NULL);
	if (are_needs(json_object_get(head, "needs")))
		return head;
	json_decref(head);
	return NULL;
}

const char *
template_need_name(const json_t *need)
{
	const char *name = json_string_value(json_object_get(need, "need"));

	return name ? name : "";
}

bool
template_needs_have(const json_t *needs, const char *name)
{
	for (size_t i = 0; i < json_array_size(needs); i++)
		if (strcmp(template_need_name(json_array_get(needs, i)), name) == 0)
			return true;
	return false;
}

static struct value *
find(const struct template_values *v, const char *need)
{
	struct hash_link *l = hash_first(&v->by_need, hash_string(need));

	for (; l; l = hash_next(l)) {
		struct value *one = container_of(l, struct value, by_need);

		if (strcmp(one->need, need) == 0)
			return one;
	}
	return NULL;
}

/* --- values --- */

/* Takes over json. */
static void
set_value(struct value *one, json_t *json)
{
	bool same = one->json && json_equal(one->json, json);

	json_decref(one->json);
	one->json = json;
	str_set(&one->problem, NULL);
	if (same)
		return;
	one->count = ++one->of->count;
	one->of->changed(one->of->tr, one->need);
}

/* A value that was known stays as it was. */
static void
set_problem(struct value *one, const char *problem)
{
	if (str_eq(one->problem, problem))
		return;
	str_set(&one->problem, problem);
	if (!one->json)
		one->of->changed(one->of->tr, one->need);
}

static void
on_value(struct sup *sup, void *arg, int r, json_t *json, const struct err *e)
{
	if (r < 0)
		set_problem(arg, e->msg);
	else
		set_value(arg, json_incref(json));
}

/* --- files --- */

static void read_file(void *arg);

static void
read_later(struct value *one)
{
	sup_timer_set(
	    one->of->tr->ar->sup, &one->timer, CLOCK_MONOTONIC, one->wait_usec, read_file, one);
}

static int64_t
change_time_ns(int fd)
{
	struct stat st;

	return fstat(fd, &st) < 0 ? -1 : st.st_ctim.tv_sec * NS_PER_S + st.st_ctim.tv_nsec;
}

/* A file that changed just now may change again without another change time. */
static void
keep_file(struct value *one, int *fd)
{
	int64_t changed_ns = change_time_ns(*fd);

	if (changed_ns < 0 || n_kept == KEPT_MAX || clock_real_ns() - changed_ns < NS_PER_S)
		return;
	one->fd = steal_fd(fd);
	one->changed_ns = changed_ns;
	one->looks = 0;
	n_kept++;
}

/* A file that does not exist yet is waited for; what is refused is a problem of the template. */
static void
on_file(
    struct sup *sup, void *arg, int r, const char *text, size_t len, int *fd, const struct err *e)
{
	struct value *one = arg;
	json_t *json;

	one->read = NULL;
	if (r == -ENOENT || r == -EAGAIN) {
		one->wait_usec = FILE_SOON_USEC;
		read_later(one);
		set_problem(one, e->msg);
		return;
	}
	json = r < 0 ? NULL : json_stringn(text, len);
	if (!json)
		json = json_pack("{s:s}", "problem", r < 0 ? e->msg : "it is not UTF-8");
	if (r == 0)
		keep_file(one, fd);
	one->wait_usec = FILE_SELDOM_USEC;
	read_later(one);
	set_value(one, json);
}

static void
read_file(void *arg)
{
	struct value *one = arg;

	if (one->fd >= 0 && ++one->looks < LOOKS_MAX &&
	    change_time_ns(one->fd) == one->changed_ns) {
		read_later(one);
		return;
	}
	close_file(one);
	one->read = task_file_read(one->of->tr, one->path, on_file, one);
}

/* --- following --- */

static const char *
text_of(const json_t *o, const char *key)
{
	const char *s = json_string_value(json_object_get(o, key));

	return s ? s : "";
}

static void
watch(struct value *one, enum source_query_kind kind, const json_t *need)
{
	struct alloc_runner *ar = one->of->tr->ar;
	const struct source_query q = { .kind = kind,
		.name = text_of(need, "name"),
		.ns = text_of(need, "namespace"),
		.region = text_of(need, "region"),
		.key = json_string_value(json_object_get(need, "key")),
		.count = json_integer_value(json_object_get(need, "count")) };

	one->watch = ar->sup->source->ops->watch(
	    ar->sup->source, ar->sa, one->of->tr->task->name, &q, on_value, one);
}

/* Returns whether another template of this task makes the file. The caller of
 * template_values_follow() looks whether values are newer than its own. */
static bool
take_made(struct value *one, const json_t *need)
{
	one->maker = one->of->find_made(one->of->tr, need, &one->json);
	if (!one->maker)
		return false;
	if (one->json)
		one->count = ++one->of->count;
	else
		str_set(&one->problem, "another template of this task, which waits too, writes it");
	return true;
}

static void
follow(struct template_values *v, const json_t *need)
{
	/* By enum template_need_kind. */
	static const enum source_query_kind kinds[] = {
		[TEMPLATE_NEED_VARIABLE] = SOURCE_VARIABLE,
		[TEMPLATE_NEED_VARIABLE_EXISTS] = SOURCE_VARIABLE,
		[TEMPLATE_NEED_VARIABLES] = SOURCE_VARIABLES,
		[TEMPLATE_NEED_SERVICE] = SOURCE_SERVICE,
		[TEMPLATE_NEED_SERVICES] = SOURCE_SERVICES,
	};
	json_int_t kind = json_integer_value(json_object_get(need, "kind"));
	struct value *one = mem_new(struct value);

	*one = (struct value){ .of = v, .need = mem_strdup(template_need_name(need)), .fd = -1 };
	TAILQ_INSERT_TAIL(&v->all, one, link);
	hash_add(&v->by_need, &one->by_need, hash_string(one->need));
	if (kind == TEMPLATE_NEED_FILE && take_made(one, need)) {
		return;
	} else if (kind == TEMPLATE_NEED_FILE) {
		one->path = mem_strdup(text_of(need, "name"));
		one->wait_usec = FILE_SOON_USEC;
		read_file(one);
	} else if (kind >= 0 && kind < (json_int_t)(sizeof kinds / sizeof kinds[0])) {
		watch(one, kinds[kind], need);
	} else {
		str_set(&one->problem, "drover has no Consul and no Vault");
	}
}

void
template_values_follow(struct template_values *v, const json_t *needs)
{
	for (size_t i = 0; i < json_array_size(needs); i++)
		if (!find(v, template_need_name(json_array_get(needs, i))))
			follow(v, json_array_get(needs, i));
}

void
template_values_made(struct template_values *v, const struct rendered *maker,
    json_t *(*value)(const struct rendered *maker))
{
	struct value *one;

	TAILQ_FOREACH (one, &v->all, link)
		if (one->maker == maker)
			set_value(one, value(maker));
}

void
template_values_keep(struct template_values *v, const json_t *needs)
{
	for (size_t i = 0; i < json_array_size(needs); i++) {
		struct value *one = find(v, template_need_name(json_array_get(needs, i)));

		if (one)
			one->keep = true;
	}
}

void
template_values_sweep(struct template_values *v)
{
	struct value *one, *next;

	for (one = TAILQ_FIRST(&v->all); one; one = next) {
		next = TAILQ_NEXT(one, link);
		if (!one->keep)
			free_value(one);
		else
			one->keep = false;
	}
}

json_t *
template_values_known(const struct template_values *v, const json_t *needs)
{
	json_t *known = json_object();

	for (size_t i = 0; i < json_array_size(needs); i++) {
		const char *name = template_need_name(json_array_get(needs, i));
		const struct value *one = find(v, name);

		if (one && one->json)
			(void)json_object_set(known, name, one->json);
	}
	return known;
}

uint64_t
template_values_count(const struct template_values *v)
{
	return v->count;
}

bool
template_values_newer(const struct template_values *v, const json_t *needs, uint64_t count)
{
	const struct value *one;

	TAILQ_FOREACH (one, &v->all, link)
		if (one->count > count && template_needs_have(needs, one->need))
			return true;
	return false;
}

const char *
template_values_problem(const struct template_values *v, const char *need)
{
	const struct value *one = find(v, need);

	return one && !one->json ? one->problem : NULL;
}
