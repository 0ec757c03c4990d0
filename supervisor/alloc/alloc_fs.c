// SPDX-License-Identifier: Apache-2.0
/* alloc_fs.c: reads directories and files of allocs through file-helper. Runs in: supervisor. */
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
#include "common/list.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "proto/alloc_fs.h"
#include "supervisor/core/sup_calls.h"
#include "supervisor/table/alloc_table.h"

#define ACTIVE_MAX  8 /* requests in file-helper: its workers have other work too */
#define WAITING_MAX 256
#define SNIFF_SIZE  512 /* the first bytes of a file, by which its type is recognised */
#define TYPE_BYTES  "application/octet-stream"
#define TYPE_TEXT   "text/plain; charset=utf-8"

struct alloc_fs_ask {
	STAILQ_ENTRY(alloc_fs_ask) link; /* while it waits */
	alloc_fs_cb *cb;                 /* NULL: alloc_fs_forget() was called */
	void *arg;
	struct id alloc;
	enum file_op op;
	char path[PATH_MAX];          /* clean */
	struct rpc_fs_list_rep files; /* FILE_OP_STAT: while the file is opened for its type */
};

struct alloc_fs {
	STAILQ_HEAD(, alloc_fs_ask) waiting; /* oldest first */
	unsigned n_waiting, n_active;
};

void
alloc_fs_new(struct sup *sup)
{
	sup->alloc_fs = mem_new(struct alloc_fs);
	STAILQ_INIT(&sup->alloc_fs->waiting);
}

void
alloc_fs_free(struct sup *sup)
{
	struct alloc_fs *fs = sup->alloc_fs;
	struct alloc_fs_ask *ask;

	while ((ask = STAILQ_FIRST(&fs->waiting))) {
		STAILQ_REMOVE_HEAD(&fs->waiting, link);
		free(ask);
	}
	free(fs);
	sup->alloc_fs = NULL;
}

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

/* Sets *e, in Nomad's words where it has such an error. Returns r. */
static int
set_error(struct sup *sup, const struct id *alloc, const char *path, int r, struct err *e)
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

/* The links that drover makes lead to directories: they are shown as the task sees them. */
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

static void
add_file(struct rpc_fs_list_rep *files, const char *dir, const struct alloc_fs_entry *entry,
    const char *name)
{
	struct rpc_file *file = list_add(rpc_file, &files->files);
	char mode[ALLOC_FS_MODE_SIZE], clean[NAME_MAX + 1];

	if (!utf8_is_text(name, strlen(name))) {
		(void)utf8_sanitize(clean, sizeof clean, name, strlen(name));
		name = clean;
	}
	alloc_fs_mode(shown_mode(dir, name, entry->mode), mode);
	file->name = mem_strdup(name);
	file->file_mode = mem_strdup(mode);
	file->is_dir = mode[0] == 'd';
	file->size = entry->size;
	file->mod_time = entry->mtime_ns;
}

static int
compare_files(const void *a, const void *b)
{
	const struct rpc_file *x = a, *y = b;

	return strcmp(str(x->name), str(y->name));
}

/* The first entry is the file or directory itself, the others are the directory's contents. */
static int
add_entries(struct alloc_fs_ask *ask, const char *at, size_t left)
{
	const char *base = strrchr(ask->path, '/');
	struct alloc_fs_entry entry;

	for (bool first = true; left > 0; first = false) {
		const char *name = at + sizeof entry;
		const char *end = left > sizeof entry ? memchr(name, 0, left - sizeof entry) : NULL;

		if (!end || end - name > NAME_MAX)
			return -EPROTO;
		memcpy(&entry, at, sizeof entry);
		if (!first)
			add_file(&ask->files, ask->path, &entry, name);
		else if (ask->op == FILE_OP_STAT)
			add_file(&ask->files, "", &entry,
			    base         ? base + 1
			    : *ask->path ? ask->path
					 : "/");
		left -= (size_t)(end + 1 - at);
		at = end + 1;
	}
	if (ask->files.files.n > 0)
		qsort(ask->files.files.v, ask->files.files.n, sizeof *ask->files.files.v,
		    compare_files);
	return 0;
}

static int
read_list(struct alloc_fs_ask *ask, int memfd)
{
	const void *map = NULL;
	size_t len = 0;
	int r = fd_memfd_map(memfd, ALLOC_FS_LIST_MAX, &map, &len);

	if (r < 0)
		return r;
	r = add_entries(ask, map, len);
	if (map)
		(void)munmap((void *)(uintptr_t)map, len);
	return r < 0 || ask->op == FILE_OP_LIST || ask->files.files.n == 1 ? r : -EPROTO;
}

/* --- requests --- */

static bool
opens_file(const struct alloc_fs_ask *ask)
{
	return ask->op == FILE_OP_OPEN || ask->op == FILE_OP_OPEN_OWN;
}

static void begin_ask(struct sup *sup, struct alloc_fs_ask *ask);

static void
begin_next(struct sup *sup)
{
	struct alloc_fs *fs = sup->alloc_fs;
	struct alloc_fs_ask *ask = STAILQ_FIRST(&fs->waiting);

	if (!ask || fs->n_active >= ACTIVE_MAX)
		return;
	STAILQ_REMOVE_HEAD(&fs->waiting, link);
	fs->n_waiting--;
	begin_ask(sup, ask);
}

static void
end_ask(struct sup *sup, struct alloc_fs_ask *ask, int r, int fd)
{
	struct err e = { 0 };

	if (r < 0)
		(void)set_error(sup, &ask->alloc, ask->path, r, &e);
	if (ask->cb)
		ask->cb(sup, ask->arg, r < 0 ? r : 0, fd, &ask->files, &e);
	else
		close_p(&fd);
	rpc_fs_list_rep_done(&ask->files);
	free(ask);
	sup->alloc_fs->n_active--;
	begin_next(sup);
}

/* fd: -1 if the file cannot be read. */
static void
set_type(struct rpc_file *file, int fd)
{
	char data[SNIFF_SIZE];
	ssize_t n = file->file_mode[0] == 'd' || fd < 0 ? 0 : pread(fd, data, sizeof data, 0);

	file->content_type = mem_strdup(
	    fd < 0 ? TYPE_BYTES : alloc_fs_type(file->name, data, n > 0 ? (size_t)n : 0));
}

/* FILE_OP_STAT has described a regular file, which now was opened for its type. A file that cannot
 * be read keeps its description. */
static void
on_type(struct sup *sup, void *arg, int r, const void *rep, int fd, const struct err *e)
{
	struct alloc_fs_ask *ask = arg;
	cleanup_close int file = fd;

	set_type(&ask->files.files.v[0], file);
	end_ask(sup, ask, 0, -1);
}

static void
call_helper(struct sup *sup, struct alloc_fs_ask *ask, enum file_op op, call_cb *cb)
{
	const size_t logs = strlen("alloc/logs");
	struct file_alloc_fs_req req = { 0 };
	const char *path = ask->path;

	req.alloc = ask->alloc;
	req.op = op;
	req.root = FILE_ROOT_ALLOC;
	/* The logs are below alloc/ for the task only; on the node they have a directory of their
	 * own. */
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
	struct rpc_file *file;

	if (r >= 0 && !opens_file(ask))
		r = read_list(ask, taken);
	if (r < 0 || ask->op != FILE_OP_STAT) {
		if (!opens_file(ask))
			close_p(&taken);
		end_ask(sup, ask, r, r < 0 ? -1 : steal_fd(&taken));
		return;
	}
	file = &ask->files.files.v[0];
	if (strchr("-ugt", file->file_mode[0])) { /* a regular file */
		call_helper(sup, ask, FILE_OP_OPEN, on_type);
		return;
	}
	set_type(file, -1);
	end_ask(sup, ask, 0, -1);
}

static void
begin_ask(struct sup *sup, struct alloc_fs_ask *ask)
{
	sup->alloc_fs->n_active++;
	call_helper(sup, ask, ask->op, on_answer);
}

struct alloc_fs_ask *
alloc_fs_ask(struct sup *sup, const struct id *alloc, enum file_op op, const char *path,
    alloc_fs_cb *cb, void *arg, struct err *e)
{
	cleanup_free struct alloc_fs_ask *ask = mem_new(struct alloc_fs_ask);
	struct alloc_fs *fs = sup->alloc_fs;
	char id[ID_UUID_SIZE];
	int r;

	if (!alloc_find(sup, alloc)) {
		id_to_uuid(alloc, id);
		(void)err_say(e, -ENOENT, "Unknown allocation \"%s\"", id);
		return NULL;
	}
	r = alloc_fs_clean(path, ask->path, sizeof ask->path);
	if (r < 0) {
		(void)set_error(sup, alloc, path, r, e);
		return NULL;
	}
	if (fs->n_waiting >= WAITING_MAX) {
		(void)err_say(
		    e, -EBUSY, "%d requests for files of allocations wait already", WAITING_MAX);
		return NULL;
	}
	ask->alloc = *alloc;
	ask->op = op;
	ask->cb = cb;
	ask->arg = arg;
	if (fs->n_active < ACTIVE_MAX) {
		begin_ask(sup, ask);
	} else {
		STAILQ_INSERT_TAIL(&fs->waiting, ask, link);
		fs->n_waiting++;
	}
	return steal_ptr(&ask);
}

void
alloc_fs_forget(struct alloc_fs_ask *ask)
{
	if (ask)
		ask->cb = NULL;
}
