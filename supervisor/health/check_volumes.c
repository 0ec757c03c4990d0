// SPDX-License-Identifier: Apache-2.0
/* check_volumes.c: asks the file system of each CSI volume that is mounted, in a child of
 * mount-helper. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/volume/volumes.h"

#define CHECK_MS     10000 /* the child has 5 s */
#define AGAIN_MS     60000 /* after a volume hung; doubled each time */
#define AGAIN_MAX_MS 3600000

/* A volume whose mounts are asked one after the other, until one does not answer: so a volume that
 * hangs takes one child of mount-helper, however many mounts it has. */
struct volume_check {
	LIST_ENTRY(volume_check) link;
	struct check c;
	uint64_t call;
	struct mnt_volume_prove_req *mounts;
	size_t n, asked;
};

/* A volume whose file system has hung. The child that asked may be left in the kernel for ever, so
 * it is asked more and more rarely. */
struct hung_volume {
	LIST_ENTRY(hung_volume) link;
	char *name;
	uint64_t wait_ms, next_ms;
};

static struct hung_volume *
find_hung(struct sup *sup, const char *name)
{
	struct hung_volume *h;

	LIST_FOREACH (h, &check_memory(sup)->hung, link)
		if (str_eq(h->name, name))
			return h;
	return NULL;
}

static void
forget_hung(struct hung_volume *h)
{
	LIST_REMOVE(h, link);
	free(h->name);
	free(h);
}

void
check_hung_volumes_forget(struct sup *sup)
{
	struct hung_volume *h;

	while ((h = LIST_FIRST(&check_memory(sup)->hung)))
		forget_hung(h);
}

void
check_volume_answered(struct sup *sup, const char *name, bool hung)
{
	struct hung_volume *h = find_hung(sup, name);

	if (h && !hung) {
		forget_hung(h);
	} else if (hung) {
		if (!h) {
			h = mem_new(struct hung_volume);
			*h = (struct hung_volume){ .name = mem_strdup(name), .wait_ms = AGAIN_MS };
			LIST_INSERT_HEAD(&check_memory(sup)->hung, h, link);
		} else if (h->wait_ms < AGAIN_MAX_MS) {
			h->wait_ms *= 2;
		}
		h->next_ms = clock_ms() + h->wait_ms;
	}
}

bool
check_volume_waits(struct sup *sup, const char *name)
{
	const struct hung_volume *h = find_hung(sup, name);

	if (!h || clock_ms() >= h->next_ms)
		return false;
	check_keep(sup, name, HEALTH_HUNG,
	    "its file system did not answer; it is asked again in %llu seconds",
	    (unsigned long long)(h->next_ms - clock_ms()) / 1000);
	return true;
}

static void
free_check(struct volume_check *vc)
{
	LIST_REMOVE(vc, link);
	free(vc->mounts);
	free(vc);
}

static void
on_late(struct check *c)
{
	struct volume_check *vc = container_of(c, struct volume_check, c);

	child_call_cancel(c->sup, vc->call);
	free_check(vc);
}

static void ask_next(struct volume_check *vc);

struct wanted_mount {
	const struct volume_place *place;
	bool found;
};

static void
compare_place(
    void *arg, const char *namespace, const char *id, const struct volume_place *place, bool block)
{
	struct wanted_mount *w = arg;

	w->found |= memcmp(place, w->place, sizeof *place) == 0;
}

/* Returns whether the mount that was asked last has not been unmounted meanwhile. */
static bool
is_published(struct sup *sup, const struct volume_check *vc)
{
	struct wanted_mount w = { .place = &vc->mounts[vc->asked - 1].place };

	volume_published_each(sup, compare_place, &w);
	return w.found;
}

static void
on_proved(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct volume_check *vc = arg;
	bool hung = r == -ETIMEDOUT;

	if (r < 0 && !hung && !is_published(sup, vc))
		r = 0;
	if (r >= 0 && vc->asked < vc->n) {
		ask_next(vc);
		return;
	}
	check_volume_answered(sup, vc->c.name, hung);
	check_end(&vc->c,
	    r >= 0 ? HEALTH_OK
	    : hung ? HEALTH_HUNG
		   : HEALTH_FAILED,
	    r < 0 ? "%s" : NULL, r < 0 ? e->msg : "");
	free_check(vc);
}

static void
ask_next(struct volume_check *vc)
{
	check_step(&vc->c, "wait for the file system's answer", CHECK_MS);
	vc->call = mnt_call_volume_prove(vc->c.sup, &vc->mounts[vc->asked++], on_proved, vc);
}

static struct volume_check *
find_check(struct sup *sup, const char *name)
{
	struct volume_check *vc;

	LIST_FOREACH (vc, &check_memory(sup)->volumes, link)
		if (str_eq(vc->c.name, name))
			return vc;
	return NULL;
}

static struct volume_check *
begin_check(struct sup *sup, const char *name)
{
	struct volume_check *vc = mem_new(struct volume_check);

	*vc = (struct volume_check){ 0 };
	LIST_INSERT_HEAD(&check_memory(sup)->volumes, vc, link);
	check_begin(&vc->c, sup, name, on_late);
	return vc;
}

static void
add_mount(
    void *arg, const char *namespace, const char *id, const struct volume_place *place, bool block)
{
	struct sup *sup = arg;
	bool is_default = str_eq(namespace, "default");
	cleanup_free char *name =
	    mem_printf("volume/%s%s%s", is_default ? "" : namespace, is_default ? "" : "/", id);
	const char *obstacle = check_is_well(sup, "state") ? "helper/mount-helper" : "state";
	struct volume_check *vc = find_check(sup, name);

	if (!vc && check_volume_waits(sup, name))
		return;
	if (!check_is_well(sup, obstacle)) {
		check_report(sup, name, HEALTH_UNKNOWN, "not checked: that needs %s", obstacle);
		return;
	}
	if (!vc)
		vc = begin_check(sup, name);
	vc->mounts = mem_resize(vc->mounts, vc->n + 1, sizeof vc->mounts[0]);
	vc->mounts[vc->n++] = (struct mnt_volume_prove_req){ .place = *place, .block = block };
}

void
check_volumes(struct sup *sup)
{
	struct volume_check *vc;

	volume_published_each(sup, add_mount, sup);
	LIST_FOREACH (vc, &check_memory(sup)->volumes, link)
		ask_next(vc);
}
