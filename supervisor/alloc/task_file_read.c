// SPDX-License-Identifier: Apache-2.0
/* task_file_read.c: opens and reads files that a job names. Runs in: supervisor. */
#include "supervisor/alloc/task_file_read.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/mem.h"
#include "supervisor/alloc/alloc_fs.h"
#include "supervisor/alloc/alloc_state.h"
#include "supervisor/alloc/task_path.h"
#include "supervisor/core/sup_timer.h"

struct task_file_read {
	struct sup *sup;
	struct alloc_fs_ask *ask;
	task_file_read_cb *cb;
	void *arg;
	bool opens;            /* only */
	struct sup_timer soon; /* the answer is an error */
	struct err error;
};

void
task_file_read_forget(struct task_file_read *f)
{
	if (!f)
		return;
	alloc_fs_forget(f->ask);
	sup_timer_cancel(&f->soon);
	free(f);
}

static int
read_all(int fd, char **ret, size_t *ret_len, struct err *e)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode))
		return err_say(e, -EINVAL, "it is not a regular file");
	if (st.st_size > TASK_FILE_MAX)
		return err_say(e, -EFBIG, "it has more than %d bytes", TASK_FILE_MAX);
	*ret = mem_alloc((size_t)st.st_size + 1);
	n = pread(fd, *ret, (size_t)st.st_size, 0);
	if (n < 0)
		return err_set(e, -errno, "read it");
	*ret_len = (size_t)n;
	return 0;
}

static void
on_opened(struct sup *sup, void *arg, int r, int fd, const struct rpc_fs_list_rep *files,
    const struct err *e)
{
	struct task_file_read *f = arg;
	task_file_read_cb *cb = f->cb;
	cleanup_free char *text = NULL;
	cleanup_close int file = fd;
	struct err why = { 0 };
	size_t len = 0;

	if (r == -EXDEV)
		(void)err_say(&why, r, "a link of the task leads out of its directories");
	else if (r < 0)
		(void)err_say(
		    &why, r == -ENOENT || alloc_fs_is_refusal(r) ? r : -EAGAIN, "%s", e->msg);
	else if (!f->opens)
		r = read_all(file, &text, &len, &why);
	arg = f->arg;
	free(f);
	cb(sup, arg, why.code, text, len, &file, &why);
}

static void
fail(void *arg)
{
	struct task_file_read f = *(struct task_file_read *)arg;
	int fd = -1;

	free(arg);
	f.cb(f.sup, f.arg, f.error.code, NULL, 0, &fd, &f.error);
}

/* secrets/ is a file system of the task's own. Other directories of its root are the host's, but an
 * artifact may have made them in the task's directory. */
static bool
is_readable(const struct task_runner *tr, const char *path, const char *clean)
{
	const char *rest, *below;

	if (task_path_begins(clean, "alloc", &rest) ||
	    !task_path_begins(clean, tr->task->name, &rest) ||
	    task_path_begins(rest, "local", &below))
		return true;
	return path[0] != '/' && !task_path_begins(rest, "secrets", &below) &&
	       !task_path_begins(rest, "private", &below);
}

static struct task_file_read *
begin(struct task_runner *tr, const char *path, bool opens, task_file_read_cb *cb, void *arg)
{
	struct task_file_read *f = mem_new(struct task_file_read);
	char clean[TASK_PATH_SIZE];
	int r;

	*f = (struct task_file_read){ .sup = tr->ar->sup, .opens = opens, .cb = cb, .arg = arg };
	r = task_path_make(tr, path, clean, &f->error);
	if (r == -EXDEV || r == -EPERM || (r >= 0 && !is_readable(tr, path, clean)))
		(void)err_say(&f->error, -EXDEV,
		    "it is neither in the task's local/ nor in the shared directory alloc/");
	else if (r >= 0)
		f->ask = alloc_fs_ask(
		    f->sup, &tr->ar->sa->id, FILE_OP_OPEN_OWN, clean, on_opened, f, &f->error);
	if (f->error.code == -EBUSY)
		f->error.code = -EAGAIN;
	if (f->error.code < 0)
		sup_timer_set(f->sup, &f->soon, CLOCK_MONOTONIC, 0, fail, f);
	return f;
}

struct task_file_read *
task_file_read(struct task_runner *tr, const char *path, task_file_read_cb *cb, void *arg)
{
	return begin(tr, path, false, cb, arg);
}

struct task_file_read *
task_file_open(struct task_runner *tr, const char *path, task_file_read_cb *cb, void *arg)
{
	return begin(tr, path, true, cb, arg);
}
