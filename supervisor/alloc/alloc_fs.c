// SPDX-License-Identifier: Apache-2.0
/* alloc_fs.c: asks the file-helper what is in an alloc's directory. Runs in: supervisor. */
#include "supervisor/alloc/alloc_fs.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/utf8.h"
#include "proto/alloc_fs.h"
#include "supervisor/table/alloc_table.h"
#include "supervisor/core/sup_calls.h"

#define ASKS_MAX   8 /* at one time: the file-helper's workers have more to do */
#define WAIT_MAX   256
#define SNIFF_SIZE 512 /* of a file, to tell its type */
#define TYPE_BYTES "application/octet-stream"
#define TYPE_TEXT  "text/plain; charset=utf-8"

struct alloc_fs_ask {
	struct alloc_fs_ask *next; /* in the queue */
	alloc_fs_cb *cb;           /* NULL: nobody waits any more */
	void *arg;
	struct id alloc;
	enum file_op op;
	char path[PATH_MAX];          /* clean */
	struct rpc_fs_list_rep files; /* FILE_OP_STAT: while the file is opened for its type */
};

/* Those that are at work, and those that wait for that, oldest first. */
static unsigned n_asks, n_waiting;
static struct alloc_fs_ask *waiting, **last_waiting = &waiting;

/* --- names --- */

int
alloc_fs_clean(const char *path, char *ret, size_t size)
{
	size_t at = 0, len;

	for (; *path; path += len) {
		while (*path == '/')
			path++;
		len = strcspn(path, "/");
		if (len == 0 || (len == 1 && path[0] == '.'))
			continue;
		if (len == 2 && path[0] == '.' && path[1] == '.') {
			if (at == 0)
				return -EXDEV;
			while (at > 0 && ret[--at] != '/')
				;
			continue;
		}
		if (at + 1 + len + 1 > size)
			return -ENAMETOOLONG;
		if (at > 0)
			ret[at++] = '/';
		memcpy(ret + at, path, len);
		at += len;
	}
	ret[at] = '\0';
	return 0;
}

void
alloc_fs_mode(unsigned st_mode, char ret[ALLOC_FS_MODE_SIZE])
{
	static const struct {
		unsigned mask, value;
		char c;
	} kinds[] = {
		{ S_IFMT, S_IFDIR, 'd' },
		{ S_IFMT, S_IFLNK, 'L' },
		{ S_IFMT, S_IFBLK, 'D' },
		{ S_IFMT, S_IFCHR, 'D' },
		{ S_IFMT, S_IFIFO, 'p' },
		{ S_IFMT, S_IFSOCK, 'S' },
		{ S_ISUID, S_ISUID, 'u' },
		{ S_ISGID, S_ISGID, 'g' },
		{ S_IFMT, S_IFCHR, 'c' },
		{ S_ISVTX, S_ISVTX, 't' },
	};
	size_t at = 0;

	for (size_t i = 0; i < ELEMENTSOF(kinds); i++)
		if ((st_mode & kinds[i].mask) == kinds[i].value)
			ret[at++] = kinds[i].c;
	if (at == 0)
		ret[at++] = '-';
	for (unsigned bit = 0400, i = 0; bit; bit >>= 1, i++)
		ret[at++] = st_mode & bit ? "rwx"[i % 3] : '-';
	ret[at] = '\0';
}

static bool
has_text_only(const unsigned char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] < 0x20 && (!p[i] || !strchr("\t\n\f\r\033", p[i])))
			return false;
	return true;
}

const char *
alloc_fs_type(const char *name, const void *data, size_t len)
{
	static const char *const by_name[][2] = {
		{ ".css", "text/css; charset=utf-8" },
		{ ".gif", "image/gif" },
		{ ".htm", "text/html; charset=utf-8" },
		{ ".html", "text/html; charset=utf-8" },
		{ ".jpeg", "image/jpeg" },
		{ ".jpg", "image/jpeg" },
		{ ".js", "text/javascript; charset=utf-8" },
		{ ".json", "application/json" },
		{ ".pdf", "application/pdf" },
		{ ".png", "image/png" },
		{ ".svg", "image/svg+xml" },
		{ ".txt", TYPE_TEXT },
		{ ".wasm", "application/wasm" },
		{ ".xml", "text/xml; charset=utf-8" },
	};
	const char *dot = strrchr(name, '.');

	for (size_t i = 0; dot && i < ELEMENTSOF(by_name); i++)
		if (strcasecmp(dot, by_name[i][0]) == 0)
			return by_name[i][1];
	return has_text_only(data, len) ? TYPE_TEXT : TYPE_BYTES;
}

/* --- answers --- */

bool
alloc_fs_is_refusal(int r)
{
	switch (-r) {
	case ENOENT:
	case ENOTDIR:
	case EISDIR:
	case EXDEV:
	case EACCES:
	case ELOOP:
	case EOPNOTSUPP:
	case ENAMETOOLONG:
		return true;
	default:
		return false;
	}
}

/* In upstream's words where it has some. Returns r. */
static int
say(struct sup *sup, const struct id *alloc, const char *path, int r, struct err *e)
{
	char id[ID_UUID_SIZE], host[256];

	id_to_uuid(alloc, id);
	(void)snprintf(host, sizeof host, "%s/alloc/%s/%.128s", sup->args.data_dir, id, path);
	switch (-r) {
	case ENOENT:
		return err_say(e, r, "stat %s: no such file or directory", host);
	case ENOTDIR:
		return err_say(e, r, "stat %s: not a directory", host);
	case EISDIR:
		return err_say(e, r, "file \"%.200s\" is a directory", path);
	case EXDEV:
		return err_say(e, r, "Path escapes the alloc directory");
	case EACCES:
		return err_say(e, r, "Reading secret file prohibited: %.200s", path);
	case EOPNOTSUPP:
		return err_say(e, r, "\"%.200s\" is neither a file nor a directory", path);
	case EFBIG:
		return err_say(e, r, "\"%.200s\" has too many files to be listed", path);
	default:
		return err_set(e, r, "read %s", host);
	}
}

/* drover's own links lead to directories, and are shown as what they are in the task. */
static unsigned
shown_mode(const char *dir, const char *name, unsigned mode)
{
	if (!S_ISLNK(mode))
		return mode;
	if (strcmp(dir, "alloc") == 0 && strcmp(name, "logs") == 0)
		return S_IFDIR | 0755;
	if (*dir && !strchr(dir, '/') && strcmp(name, "secrets") == 0)
		return S_IFDIR | 0700;
	return mode;
}

static int
add_file(struct rpc_fs_list_rep *files, const char *dir, const struct alloc_fs_entry *entry,
    const char *name)
{
	struct rpc_file *file = list_add(rpc_file, &files->files);
	char mode[ALLOC_FS_MODE_SIZE], clean[NAME_MAX + 1];

	if (!file)
		return -ENOMEM;
	if (!utf8_is_text(name, strlen(name))) {
		(void)utf8_sanitize(clean, sizeof clean, name, strlen(name));
		name = clean;
	}
	alloc_fs_mode(shown_mode(dir, name, entry->mode), mode);
	file->name = strdup(name);
	file->file_mode = strdup(mode);
	file->is_dir = mode[0] == 'd';
	file->size = entry->size;
	file->mod_time = entry->mtime_ns;
	return file->name && file->file_mode ? 0 : -ENOMEM;
}

static int
compare_files(const void *a, const void *b)
{
	const struct rpc_file *x = a, *y = b;

	return strcmp(str(x->name), str(y->name));
}

/* The first entry is what was asked for, the others what is in it. */
static int
take_entries(struct alloc_fs_ask *ask, const char *at, size_t left)
{
	const char *base = strrchr(ask->path, '/');
	struct alloc_fs_entry entry;
	int r = 0;

	for (bool first = true; r == 0 && left > 0; first = false) {
		const char *name = at + sizeof entry;
		const char *end = left > sizeof entry ? memchr(name, 0, left - sizeof entry) : NULL;

		if (!end || end - name > NAME_MAX)
			return -EPROTO;
		memcpy(&entry, at, sizeof entry);
		if (!first)
			r = add_file(&ask->files, ask->path, &entry, name);
		else if (ask->op == FILE_OP_STAT)
			r = add_file(&ask->files, "", &entry,
			    base         ? base + 1
			    : *ask->path ? ask->path
					 : "/");
		left -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	if (ask->files.files.n > 0)
		qsort(ask->files.files.v, ask->files.files.n, sizeof *ask->files.files.v,
		    compare_files);
	return r;
}

static int
take_list(struct alloc_fs_ask *ask, int memfd)
{
	const void *map = NULL;
	size_t len = 0;
	int r = fd_memfd_map(memfd, ALLOC_FS_LIST_MAX, &map, &len);

	if (r < 0)
		return r;
	r = take_entries(ask, map, len);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	return r < 0 || ask->op == FILE_OP_LIST || ask->files.files.n == 1 ? r : -EPROTO;
}

/* --- questions --- */

static void start(struct sup *sup, struct alloc_fs_ask *ask);

static void
start_next(struct sup *sup)
{
	struct alloc_fs_ask *ask = waiting;

	if (!ask || n_asks >= ASKS_MAX)
		return;
	waiting = ask->next;
	if (!waiting)
		last_waiting = &waiting;
	n_waiting--;
	start(sup, ask);
}

static void
finish(struct sup *sup, struct alloc_fs_ask *ask, int r, int fd, struct err *e)
{
	if (r < 0)
		(void)say(sup, &ask->alloc, ask->path, r, e);
	if (ask->cb)
		ask->cb(sup, ask->arg, r < 0 ? r : 0, fd, &ask->files, e);
	else
		close_p(&fd);
	rpc_fs_list_rep_done(&ask->files);
	free(ask);
	n_asks--;
	start_next(sup);
}

static int
set_type(struct rpc_file *file, int fd)
{
	char data[SNIFF_SIZE];
	ssize_t n = file->file_mode[0] == 'd' || fd < 0 ? 0 : pread(fd, data, sizeof data, 0);

	file->content_type =
	    strdup(fd < 0 ? TYPE_BYTES : alloc_fs_type(file->name, data, n > 0 ? (size_t)n : 0));
	return file->content_type ? 0 : -ENOMEM;
}

/* The regular file that FILE_OP_STAT has told about. What cannot be read still has been told about.
 */
static void
on_type(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_fs_ask *ask = arg;
	cleanup_close int file = fd;
	struct err error = { 0 };

	finish(sup, ask, set_type(&ask->files.files.v[0], file), -1, &error);
}

static void
call(struct sup *sup, struct alloc_fs_ask *ask, enum file_op op, call_cb *cb)
{
	const size_t logs = strlen("alloc/logs");
	struct file_alloc_fs_req req = { 0 };
	const char *path = ask->path;

	req.alloc = ask->alloc;
	req.op = op;
	req.root = FILE_ROOT_ALLOC;
	/* In the task's view; here they lie beside it. */
	if (strncmp(ask->path, "alloc/logs", logs) == 0 &&
	    (ask->path[logs] == '/' || !ask->path[logs])) {
		req.root = FILE_ROOT_LOGS;
		path += logs;
	}
	(void)IPC_TEXT_SET(req.path, path);
	(void)file_call_alloc_fs(sup, &req, cb, ask);
}

static void
on_answer(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_fs_ask *ask = arg;
	cleanup_close int taken = fd;
	struct err error = { 0 };
	struct rpc_file *file;

	if (r >= 0 && ask->op != FILE_OP_OPEN)
		r = take_list(ask, taken);
	if (r < 0 || ask->op != FILE_OP_STAT) {
		if (ask->op != FILE_OP_OPEN)
			close_p(&taken);
		finish(sup, ask, r, r < 0 ? -1 : steal_fd(&taken), &error);
		return;
	}
	file = &ask->files.files.v[0];
	if (strchr("-ugt", file->file_mode[0])) /* a regular file */
		call(sup, ask, FILE_OP_OPEN, on_type);
	else
		finish(sup, ask, set_type(file, -1), -1, &error);
}

static void
start(struct sup *sup, struct alloc_fs_ask *ask)
{
	n_asks++;
	call(sup, ask, ask->op, on_answer);
}

static void
wait_for_turn(struct alloc_fs_ask *ask)
{
	*last_waiting = ask;
	last_waiting = &ask->next;
	n_waiting++;
}

struct alloc_fs_ask *
alloc_fs_ask(struct sup *sup, const struct id *alloc, enum file_op op, const char *path,
    alloc_fs_cb *cb, void *arg, struct err *e)
{
	cleanup_free struct alloc_fs_ask *ask = calloc(1, sizeof *ask);
	char id[ID_UUID_SIZE];
	int r;

	if (!ask) {
		(void)err_set(e, -ENOMEM, "read files");
		return NULL;
	}
	if (!alloc_find(sup, alloc)) {
		id_to_uuid(alloc, id);
		(void)err_say(e, -ENOENT, "Unknown allocation \"%s\"", id);
		return NULL;
	}
	r = alloc_fs_clean(path, ask->path, sizeof ask->path);
	if (r < 0) {
		(void)say(sup, alloc, path, r, e);
		return NULL;
	}
	if (n_waiting >= WAIT_MAX) {
		(void)err_say(e, -EBUSY, "%d requests for files wait already", WAIT_MAX);
		return NULL;
	}
	ask->alloc = *alloc;
	ask->op = op;
	ask->cb = cb;
	ask->arg = arg;
	if (n_asks < ASKS_MAX)
		start(sup, ask);
	else
		wait_for_turn(ask);
	return steal_ptr(&ask);
}

void
alloc_fs_forget(struct alloc_fs_ask *ask)
{
	if (ask)
		ask->cb = NULL;
}
