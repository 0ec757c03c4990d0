// SPDX-License-Identifier: Apache-2.0
/* fs_log.c: streams a task's log. Runs in: supervisor. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/fd.h"
#include "common/list.h"
#include "common/mem.h"
#include "model/engine/field.h"
#include "supervisor/api/fs_stream.h"
#include "supervisor/api/log_reader.h"
#include "supervisor/table/alloc_table.h"

struct log_source {
	struct fs_source src;
	struct log_reader reader;
	bool in_journal; /* the files have what the journal did not accept */
	char file[LOG_PREFIX_SIZE + 48];
};

/* A task's name passed name_is_task(), so it needs no escapes in JSON. */
static ssize_t
read_log(struct fs_source *src, void *buf, size_t max, struct fs_chunk *ret)
{
	static const char *const events[] = {
		[LOG_EVENT_TRUNCATED] = "file truncated", [LOG_EVENT_DELETED] = "file deleted"
	};
	struct log_source *ls = container_of(src, struct log_source, src);
	struct log_chunk chunk;
	ssize_t n = log_reader_read(&ls->reader, buf, max, &chunk);

	if (n < 0)
		return n;
	(void)snprintf(ls->file, sizeof ls->file, "\"alloc/logs/%s%" PRIu64 "\"", ls->reader.prefix,
	    chunk.index);
	*ret = (struct fs_chunk){ .file = ls->file,
		.end = chunk.end,
		.event = events[chunk.event],
		.store = ls->in_journal ? "journald" : NULL,
		.time_us = chunk.time_us };
	return n;
}

static void
free_log(struct fs_source *src)
{
	struct log_source *ls = container_of(src, struct log_source, src);

	log_reader_done(&ls->reader);
	free(ls);
}

/* Returns 0, or an HTTP status with *e. */
static int
check_wish(
    struct sup *sup, const struct fs_log_wish *wish, const struct sup_alloc **ret, struct err *e)
{
	const struct task_state *state;
	const struct sup_alloc *sa;
	const struct task *task;
	char id[ID_UUID_SIZE];

	if (!*str(wish->task))
		return err_say(e, -EINVAL, "must provide task name"), 400;
	if (strcmp(str(wish->type), "stdout") != 0 && strcmp(str(wish->type), "stderr") != 0)
		return err_say(e, -EINVAL, "must provide log type (stdout/stderr)"), 400;
	if (*str(wish->origin) && strcmp(wish->origin, "start") != 0 &&
	    strcmp(wish->origin, "end") != 0 && strcmp(wish->origin, "file") != 0)
		return err_say(e, -EINVAL, "origin must be start, end or file"), 400;
	sa = alloc_find(sup, wish->alloc);
	id_to_uuid(wish->alloc, id);
	if (!sa)
		return err_say(e, -ENOENT, "Unknown allocation \"%s\"", id), 404;
	task = alloc_task(sa, wish->task);
	if (!task)
		return err_say(e, -EINVAL, "unknown task name \"%.128s\"", wish->task), 400;
	if (task->log_config && task->log_config->disabled == OPT_TRUE)
		return err_say(e, -ENOENT, "the logs of task \"%s\" are disabled", wish->task), 404;
	state = map_get(task_state, &sa->a.task_states, wish->task);
	if (!state || state->started_at == 0)
		return err_say(e, -ENOENT, "task \"%s\" not started yet. No logs available",
			   wish->task),
		       404;
	*ret = sa;
	return 0;
}

/* A task whose output goes to the journal alone has files only while that accepts nothing. */
static int
say_journal(const struct sup_alloc *sa, const struct task *task, struct err *e)
{
	char id[ID_UUID_SIZE];

	id_to_uuid(&sa->id, id);
	return err_say(e, -ENOENT,
	    "the logs of task \"%s\" are in the journal: journalctl DROVER_ALLOC_ID=%s "
	    "DROVER_TASK=%s",
	    task->name, id, task->name);
}

static int
open_reader(struct sup *sup, const struct sup_alloc *sa, const struct fs_log_wish *wish,
    struct log_reader *ret, struct err *e)
{
	uint64_t offset = wish->offset > 0 ? (uint64_t)wish->offset : 0;
	char name[ID_UUID_SIZE];
	int fd, r;

	id_to_uuid(&sa->id, name);
	fd = fd_open_beneath(sup->log_dir_fd, name, O_RDONLY | O_DIRECTORY, 0);
	if (fd == -ENOENT)
		return err_say(e, fd, "state for allocation %s not found on client", name);
	if (fd < 0)
		return err_set(e, fd, "open the logs of allocation %s", name);
	r = log_reader_open(ret, fd, wish->task, wish->type, strcmp(str(wish->origin), "end") == 0,
	    offset, wish->follow, e);
	if (r == 0 && strcmp(str(wish->origin), "file") == 0)
		log_reader_resume(ret, wish->file > 0 ? (uint64_t)wish->file : 0, (off_t)offset);
	ret->times = wish->times;
	return r;
}

int
fs_log_open(struct sup *sup, const struct fs_log_wish *wish, struct fs_source **ret, struct err *e)
{
	const struct sup_alloc *sa = NULL;
	const struct task *task;
	struct log_source *ls;
	int r = check_wish(sup, wish, &sa, e);

	if (r != 0)
		return r;
	ls = mem_new(struct log_source);
	r = open_reader(sup, sa, wish, &ls->reader, e);
	task = alloc_task(sa, wish->task);
	ls->in_journal = wish->times && task_log_store(sup->config, task) == LOG_STORE_JOURNALD;
	if (r == 0 && ls->reader.empty && task_log_store(sup->config, task) == LOG_STORE_JOURNALD) {
		log_reader_done(&ls->reader);
		r = say_journal(sa, task, e);
	}
	if (r < 0) {
		free(ls);
		return r == -ENOENT ? 404 : r == -EACCES ? 403 : 500;
	}
	ls->src.read = read_log;
	ls->src.free = free_log;
	*ret = &ls->src;
	return 0;
}
