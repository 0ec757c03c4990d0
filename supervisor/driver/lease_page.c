// SPDX-License-Identifier: Apache-2.0
/* lease_page.c: reads the lease page, and restarts the agent when the page is removed. Runs in:
 * supervisor. */
#include "supervisor/driver/lease_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"

struct lease_watch {
	sd_event_source *source;
	struct stat page; /* the page that heartbeat writes */
};

int
lease_page_open(const struct sup *sup, struct stat *ret, struct err *e)
{
	cleanup_close int fd = -1;
	char path[4096];

	(void)snprintf(path, sizeof path, "%s/lease", sup->args.runtime_dir);
	fd = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0 || fstat(fd, ret) < 0)
		return err_set(e, -errno, "open the lease page %s", path);
	return steal_fd(&fd);
}

int
lease_page_read(const struct sup *sup, struct lease_page *ret, struct err *e)
{
	struct stat st;
	cleanup_close int fd = lease_page_open(sup, &st, e);
	int r;

	if (fd < 0)
		return fd;
	r = lease_read(fd, ret);
	return r < 0 ? err_set(e, r, "read the lease page %s/lease", sup->args.runtime_dir) : 0;
}

static bool
is_same(const struct stat *a, const struct stat *b)
{
	return a->st_dev == b->st_dev && a->st_ino == b->st_ino;
}

/* Returns true if <rt> is still the directory that the launcher made, so that a new page can be
 * made in it. */
static bool
has_directory(const struct sup *sup)
{
	char path[4096];
	struct stat now, then;

	(void)snprintf(path, sizeof path, "%s/x", sup->args.runtime_dir);
	return stat(path, &now) == 0 && fstat(sup->sock_dir_fd, &then) == 0 && is_same(&now, &then);
}

/*
 * Restarts the agent's processes if the page was replaced. Until they have a new page, executors
 * read the old one, which heartbeat writes until it ends; the gap is shorter than any limit. If the
 * directory is gone, no page could be made, so nothing is restarted: the old page keeps the leases
 * of running tasks.
 */
static void
check_page(struct sup *sup)
{
	struct lease_watch *w = sup->lease_watch;
	struct err e = { 0 };
	struct stat st;
	cleanup_close int fd = lease_page_open(sup, &st, &e);

	if (fd >= 0 && is_same(&st, &w->page))
		return;
	if (!has_directory(sup)) {
		log_error("the directory %s was removed: running tasks continue, but no task with "
			  "stop_after_client_disconnect can start; restart the agent",
		    sup->args.runtime_dir);
		w->source = sd_event_source_disable_unref(w->source);
		return;
	}
	log_warn("the lease page %s/lease was %s: the agent's processes restart to make a new one; "
		 "tasks continue",
	    sup->args.runtime_dir, fd < 0 ? "removed" : "replaced");
	sup->exiting = true;
}

static int
on_change(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	struct sup *sup = userdata;

	if (!sup->exiting && (event->len == 0 || strcmp(event->name, "lease") == 0))
		check_page(sup);
	return 0;
}

void
lease_page_watch(struct sup *sup)
{
	struct lease_watch *w = mem_new(struct lease_watch);
	cleanup_close int fd = -1;
	struct err e = { 0 };
	int r;

	sup->lease_watch = w;
	/* The watch comes before the stat, so that no change in between is missed. */
	r = sd_event_add_inotify(sup->event, &w->source, sup->args.runtime_dir,
	    IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
	    on_change, sup);
	if (r < 0)
		log_warn("watch %s: %s; if the lease page is removed, no new one is made",
		    sup->args.runtime_dir, strerrordesc_np(-r));
	fd = lease_page_open(sup, &w->page, &e);
	if (fd < 0) {
		log_warn("%s", e.msg);
		w->source = sd_event_source_disable_unref(w->source);
	}
}

void
lease_page_unwatch(struct sup *sup)
{
	if (!sup->lease_watch)
		return;
	sd_event_source_disable_unref(sup->lease_watch->source);
	free_p(&sup->lease_watch);
}
