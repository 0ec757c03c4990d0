// SPDX-License-Identifier: Apache-2.0
/* lease_page.c: the lease page by its name, and what is done when it goes away. Runs in:
 * supervisor. */
#include "supervisor/driver/lease_page.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <systemd/sd-event.h>

#include "common/cleanup.h"
#include "common/log.h"

static sd_event_source *watch;
static struct stat page; /* the one that heartbeat writes */

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

/* Is <rt> the directory that the launcher made, so that it can make a page there? */
static bool
has_directory(const struct sup *sup)
{
	char path[4096];
	struct stat now, then;

	(void)snprintf(path, sizeof path, "%s/x", sup->args.runtime_dir);
	return stat(path, &now) == 0 && fstat(sup->sock_dir_fd, &then) == 0 && is_same(&now, &then);
}

/*
 * Until the set has its new page, executors read the old one, which heartbeat writes till its end:
 * that takes less than any limit. Without the directory nothing could be made, and the old page
 * still holds their leases: everything stays as it is.
 */
static void
look(struct sup *sup)
{
	struct err e = { 0 };
	struct stat st;
	cleanup_close int fd = lease_page_open(sup, &st, &e);

	if (fd >= 0 && is_same(&st, &page))
		return;
	if (!has_directory(sup)) {
		log_error("%s is not there any more: what runs goes on, but nothing with "
			  "stop_after_client_disconnect can start; start the agent again",
		    sup->args.runtime_dir);
		watch = sd_event_source_disable_unref(watch);
		return;
	}
	log_warn("the lease page %s/lease was %s: the agent's processes are started again, for it "
		 "to be made anew; tasks go on",
	    sup->args.runtime_dir, fd < 0 ? "taken away" : "replaced");
	sup->exiting = true;
}

static int
on_change(sd_event_source *source, const struct inotify_event *event, void *userdata)
{
	struct sup *sup = userdata;

	if (!sup->exiting && (event->len == 0 || strcmp(event->name, "lease") == 0))
		look(sup);
	return 0;
}

void
lease_page_watch(struct sup *sup)
{
	cleanup_close int fd = -1;
	struct err e = { 0 };
	int r;

	/* First, so that no change after the look is missed. */
	r = sd_event_add_inotify(sup->event, &watch, sup->args.runtime_dir,
	    IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO | IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR,
	    on_change, sup);
	if (r < 0)
		log_warn("watch %s: %s; the lease page is not made anew if somebody removes it",
		    sup->args.runtime_dir, strerrordesc_np(-r));
	fd = lease_page_open(sup, &page, &e);
	if (fd < 0) {
		log_warn("%s", e.msg);
		lease_page_unwatch();
	}
}

void
lease_page_unwatch(void)
{
	watch = sd_event_source_disable_unref(watch);
}
