// SPDX-License-Identifier: Apache-2.0
/* check_volumes.c: asks the file system of each CSI volume that is mounted, in a child of
 * mount-helper. Runs in: supervisor. */
#include <errno.h>
#include <stdlib.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/mem.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/health/check_memory.h"
#include "supervisor/volume/volumes.h"

#define CHECK_MS     10000 /* the child has 5 s */
#define AGAIN_MS     60000 /* after a volume hung; doubled each time */
#define AGAIN_MAX_MS 3600000

struct volume_check {
	struct check c;
	uint64_t call;
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
	check_report(sup, name, HEALTH_HUNG,
	    "its file system did not answer; it is asked again in %llu seconds",
	    (unsigned long long)(h->next_ms - clock_ms()) / 1000);
	return true;
}

static void
on_late(struct check *c)
{
	struct volume_check *vc = container_of(c, struct volume_check, c);

	child_call_cancel(c->sup, vc->call);
	free(vc);
}

static void
on_proved(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct volume_check *vc = arg;
	bool hung = r == -ETIMEDOUT;

	if (vc->c.name)
		check_volume_answered(sup, vc->c.name, hung);
	check_end(&vc->c,
	    r >= 0 ? HEALTH_OK
	    : hung ? HEALTH_HUNG
		   : HEALTH_FAILED,
	    r < 0 ? "%s" : NULL, r < 0 ? e->msg : "");
	free(vc);
}

static void
check_volume(
    void *arg, const char *namespace, const char *id, const struct volume_place *place, bool block)
{
	struct sup *sup = arg;
	bool is_default = str_eq(namespace, "default");
	cleanup_free char *name =
	    mem_printf("volume/%s%s%s", is_default ? "" : namespace, is_default ? "" : "/", id);
	struct mnt_volume_prove_req req = { .place = *place, .block = block };
	struct component *known = component_find(health_components(sup), name);
	struct volume_check *vc;

	if ((known && known->seen) || check_volume_waits(sup, name))
		return; /* another mount of the same volume is checked */
	if (!check_is_well(sup, "state")) {
		check_report(sup, name, HEALTH_UNKNOWN,
		    "not checked: nothing is sent while state.db cannot be written");
		return;
	}
	vc = mem_new(struct volume_check);
	*vc = (struct volume_check){ 0 };
	check_begin(&vc->c, sup, name, on_late);
	check_step(&vc->c, "wait for the file system's answer", CHECK_MS);
	vc->call = mnt_call_volume_prove(sup, &req, on_proved, vc);
}

void
check_volumes(struct sup *sup)
{
	volume_published_each(sup, check_volume, sup);
}
