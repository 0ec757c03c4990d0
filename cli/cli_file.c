// SPDX-License-Identifier: Apache-2.0
/* cli_file.c: reads the files that operators pass to commands. Runs in: cli. */
#include "cli/cli_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cli_screen.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "hcl/hcl.h"

#define FILE_MAX ((size_t)32 << 20)

static int
read_all(FILE *in, const char *name, char **ret, size_t *ret_len, struct err *e)
{
	cleanup_free char *text = NULL;
	size_t len = 0, size = 64 * 1024;

	for (;;) {
		text = mem_resize(text, size + 1, 1);
		len += fread(text + len, 1, size - len, in);
		if (ferror(in))
			return err_set(e, errno ? -errno : -EIO, "read %s", name);
		if (len < size)
			break;
		if (size >= FILE_MAX)
			return err_say(
			    e, -EFBIG, "%s is larger than %zu MiB", name, FILE_MAX >> 20);
		size *= 2;
	}
	text[len] = '\0';
	*ret = steal_ptr(&text);
	*ret_len = len;
	return 0;
}

int
cli_file_open(const char *path, struct cli_file *ret, struct err *e)
{
	cleanup_file FILE *file = NULL;
	int r;

	ret->is_stdin = strcmp(path, "-") == 0;
	ret->name = ret->is_stdin ? "standard input" : path;
	if (!ret->is_stdin) {
		file = fopen(path, "re");
		if (!file)
			return err_set(e, -errno, "open %s", path);
	}
	r = read_all(file ? file : stdin, ret->name, &ret->text, &ret->len, e);
	return r;
}

int
cli_file_open_filled(const char *path, struct cli_file *ret, struct err *e)
{
	int r = cli_file_open(path, ret, e);

	if (r == 0 && strspn(ret->text, " \t\r\n") == ret->len)
		return err_say(e, -EINVAL, "%s is empty", ret->name);
	return r;
}

void
cli_file_done(struct cli_file *file)
{
	free_p(&file->text);
}

bool
cli_file_is_json(const struct cli_file *file)
{
	const char *s = file->text;

	while (isspace((unsigned char)*s))
		s++;
	return *s == '{';
}

int
cli_file_json(const struct cli_file *file, json_t **ret, struct err *e)
{
	json_error_t why;
	json_t *value = json_loadb(file->text, file->len, JSON_REJECT_DUPLICATES, &why);

	if (!value)
		return err_say(
		    e, -EINVAL, "%s:%d:%d: %s", file->name, why.line, why.column, why.text);
	*ret = value;
	return 0;
}

int
cli_file_read(const char *path, const char *what, json_t **ret, struct err *e)
{
	struct cli_file file = { 0 };
	int r = cli_file_open_filled(path, &file, e);

	if (r == 0)
		r = cli_file_is_json(&file)
			? cli_file_json(&file, ret, e)
			: err_say(e, -EINVAL, "%s is not JSON: expected a %s as a JSON object",
			      file.name, what);
	cli_file_done(&file);
	return r;
}

/* Prints a sentence, which is wrapped, and the line with the caret below it, which are not. */
static void
print_problem(const char *text)
{
	size_t n = strcspn(text, "\n");
	cleanup_free char *sentence = mem_printf("drover: %.*s", (int)n, text);

	cli_put(stderr, 4, sentence);
	if (text[n])
		(void)fprintf(stderr, "%s\n", text + n + 1);
}

int
cli_file_problems(const struct cli_file *file, struct hcl *h, struct err *e)
{
	unsigned errors = hcl_error_count(h);

	for (const struct hcl_problem *p = hcl_problems(h); p; p = p->next)
		print_problem(hcl_problem_text(h, p));
	return errors ? err_say(e, -EINVAL, "%s has %u error%s", file->name, errors,
			    errors == 1 ? "" : "s")
		      : 0;
}

static int
write_line(int fd, const char *line, size_t len, bool comments)
{
	size_t space = strspn(line, " ");

	if (!comments && line[space] == '#')
		return 0;
	return write(fd, line, len) == (ssize_t)len ? 0 : errno ? -errno : -EIO;
}

int
cli_file_write_example(const char *path, const char *lines, bool comments, struct err *e)
{
	cleanup_close int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
	int r = 0;

	if (fd < 0 && errno == EEXIST)
		return err_say(e, -EEXIST, "%s exists already", path);
	if (fd < 0)
		return err_set(e, -errno, "make %s", path);
	for (const char *line = lines; *line && r == 0; line = strchr(line, '\n') + 1)
		r = write_line(fd, line, (size_t)(strchr(line, '\n') + 1 - line), comments);
	return r < 0 ? err_set(e, r, "write %s", path) : 0;
}
