// SPDX-License-Identifier: Apache-2.0
/* csl_trash.c: removes the data of deleted volumes. Runs in: drover-csi-local, in its own thread.
 */
#include "contrib/csi-local/csl_trash.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/log.h"
#include "common/mem.h"
#include "common/path.h"

struct csl_trash {
	int fd;
	sem_t wanted;
};

static void
empty_trash(const struct csl_trash *t)
{
	int fd = openat(t->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	cleanup_dir DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *d;
	int r;

	if (!dir) {
		log_warn("read the trash: %s", strerror(errno));
		close_p(&fd);
		return;
	}
	while ((d = readdir(dir))) {
		if (strcmp(d->d_name, ".") == 0 || strcmp(d->d_name, "..") == 0)
			continue;
		r = tree_remove_at(t->fd, d->d_name);
		if (r < 0) /* retried after the next delete and at the next start */
			log_warn("the data of deleted volume %s stays in the trash: %s", d->d_name,
			    strerror(-r));
	}
}

static void *
trash_main(void *arg)
{
	struct csl_trash *t = arg;

	for (;;) {
		empty_trash(t);
		while (sem_wait(&t->wanted) < 0)
			;
	}
	return NULL;
}

int
csl_trash_start(int trash_fd, struct csl_trash **ret, struct err *e)
{
	struct csl_trash *t = mem_new(struct csl_trash);
	pthread_t thread;
	int r;

	t->fd = trash_fd;
	(void)sem_init(&t->wanted, 0, 0);
	r = pthread_create(&thread, NULL, trash_main, t);
	if (r != 0) {
		free(t);
		return err_set(e, -r, "start the trash thread");
	}
	(void)pthread_detach(thread);
	*ret = t;
	return 0;
}

void
csl_trash_wake(struct csl_trash *t)
{
	(void)sem_post(&t->wanted);
}
