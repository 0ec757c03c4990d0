// SPDX-License-Identifier: Apache-2.0
/* cli_fmt.c: drover fmt: rewrites HCL files in the canonical format. Runs in: cli. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/cli_file.h"
#include "cli/cli_print.h"
#include "cli/cli_verbs.h"
#include "common/cleanup.h"
#include "common/mem.h"
#include "hcl/hcl_format.h"

static struct {
	bool check, list, recursive, write;
} options = { .list = true, .write = true };

const struct cli_flag cli_fmt_flags[] = {
	{ "check", CLI_FLAG_BOOL, &options.check, NULL,
	    "change no file; exit code 1 if a file is not in the canonical format" },
	{ "list", CLI_FLAG_BOOL, &options.list, NULL,
	    "list the files that are not in the canonical format (default true)" },
	{ "recursive", CLI_FLAG_BOOL, &options.recursive, NULL,
	    "also format files in subdirectories" },
	{ "write", CLI_FLAG_BOOL, &options.write, NULL,
	    "write the files (default true); with -write=false -list=false, print the text "
	    "instead" },
	{ 0 },
};

/* What one run has found. */
struct run {
	bool changed, failed;
};

DEFINE_CLEANUP(struct hcl *, hcl_free);

/* Replaces the file at once, with its permissions: a reader sees the old text or the new one. */
static int
replace_file(const char *path, const char *text, size_t len, struct err *e)
{
	cleanup_free char *temporary = mem_printf("%s.drover-fmt.XXXXXX", path);
	cleanup_close int fd = -1;
	struct stat st;

	if (stat(path, &st) < 0)
		return err_set(e, -errno, "read %s", path);
	fd = mkostemp(temporary, O_CLOEXEC);
	if (fd < 0)
		return err_set(e, -errno, "make a file beside %s", path);
	if (write(fd, text, len) != (ssize_t)len || fchmod(fd, st.st_mode & 07777) < 0 ||
	    (fchown(fd, st.st_uid, st.st_gid) < 0 && errno != EPERM) || fsync(fd) < 0 ||
	    rename(temporary, path) < 0) {
		(void)err_set(e, -errno, "write %s", path);
		(void)unlink(temporary);
		return e->code;
	}
	return 0;
}

static int
format_text(const struct cli_file *file, struct run *run, struct err *e)
{
	cleanup_with(hcl_free) struct hcl *h = hcl_new(&hcl_job_limits);
	const struct hcl_source source = { file->name, file->text, file->len };
	bool prints = file->is_stdin || (!options.list && !options.write), differs;
	size_t len;
	char *made = hcl_format(h, &source, &len);

	if (!made) {
		for (const struct hcl_problem *p = hcl_problems(h); p; p = p->next)
			(void)fprintf(stderr, "drover: %s\n", hcl_problem_text(h, p));
		return err_say(e, -EINVAL, "%s is not valid HCL", file->name);
	}
	differs = len != file->len || memcmp(made, file->text, len) != 0;
	run->changed |= differs;
	if (differs && options.list && !file->is_stdin)
		(void)printf("%s\n", file->name);
	if (prints && !options.check)
		(void)fwrite(made, 1, len, stdout);
	if (differs && !file->is_stdin && !options.check && options.write)
		return replace_file(file->name, made, len, e);
	return 0;
}

static void
format_path(struct cli *cli, const char *path, struct run *run)
{
	struct cli_file file = { 0 };
	struct err e = { 0 };
	int r = cli_file_open(path, &file, &e);

	if (r == 0)
		r = format_text(&file, run, &e);
	cli_file_done(&file);
	if (r < 0) {
		(void)cli_fail(cli, &e);
		run->failed = true;
	}
}

static bool
is_hcl_name(const char *name)
{
	size_t len = strlen(name);

	return (len > 4 && strcmp(name + len - 4, ".hcl") == 0) ||
	       (len > 6 && strcmp(name + len - 6, ".nomad") == 0);
}

static int
is_wanted(const struct dirent *entry)
{
	return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static void
format_dir(struct cli *cli, const char *path, struct run *run)
{
	struct dirent **entries;
	int n = scandir(path, &entries, is_wanted, alphasort);
	struct err e = { 0 };

	if (n < 0) {
		(void)err_set(&e, -errno, "list directory %s", path);
		(void)cli_fail(cli, &e);
		run->failed = true;
		return;
	}
	for (int i = 0; i < n; i++) {
		cleanup_free char *below = mem_printf("%s/%s", path, entries[i]->d_name);
		struct stat st;

		if (lstat(below, &st) == 0 && S_ISDIR(st.st_mode) && options.recursive)
			format_dir(cli, below, run);
		else if (stat(below, &st) == 0 && S_ISREG(st.st_mode) && is_hcl_name(below))
			format_path(cli, below, run);
		free(entries[i]);
	}
	free(entries);
}

static void
format_argument(struct cli *cli, const char *path, struct run *run)
{
	struct err e = { 0 };
	struct stat st;

	if (strcmp(path, "-") == 0) {
		format_path(cli, path, run);
	} else if (stat(path, &st) < 0) {
		(void)err_set(&e, -errno, "open %s", path);
		(void)cli_fail(cli, &e);
		run->failed = true;
	} else if (S_ISDIR(st.st_mode)) {
		format_dir(cli, path, run);
	} else if (!is_hcl_name(path)) {
		(void)err_say(
		    &e, -EINVAL, "%s: only files named .hcl or .nomad are formatted", path);
		(void)cli_fail(cli, &e);
		run->failed = true;
	} else {
		format_path(cli, path, run);
	}
}

int
cli_fmt(struct cli *cli, int argc, char **argv)
{
	struct run run = { 0 };

	if (argc == 0)
		format_dir(cli, ".", &run);
	for (int i = 0; i < argc; i++)
		format_argument(cli, argv[i], &run);
	return run.failed || (options.check && run.changed) ? CLI_FAILED : CLI_OK;
}
