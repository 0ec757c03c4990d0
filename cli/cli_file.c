// SPDX-License-Identifier: Apache-2.0
/* cli_file.c: reads the JSON files that operators pass to commands. Runs in: drover. */
#include "cli/cli_file.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/mem.h"

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
cli_file_read(const char *path, const char *what, json_t **ret, struct err *e)
{
	const char *name = strcmp(path, "-") == 0 ? "standard input" : path;
	cleanup_file FILE *file = NULL;
	cleanup_free char *text = NULL;
	FILE *in = stdin;
	json_error_t why;
	json_t *value;
	const char *start;
	size_t len = 0;
	int r;

	if (strcmp(path, "-") != 0) {
		file = fopen(path, "re");
		if (!file)
			return err_set(e, -errno, "open %s", path);
		in = file;
	}
	r = read_all(in, name, &text, &len, e);
	if (r < 0)
		return r;
	for (start = text; isspace((unsigned char)*start);)
		start++;
	if (*start == '\0')
		return err_say(e, -EINVAL, "%s is empty: expected a %s as JSON", name, what);
	if (*start != '{')
		return err_say(e, -EINVAL,
		    "%s is not JSON: HCL files are not supported yet (for a job, `nomad job run "
		    "-output` converts one)",
		    name);
	value = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
	if (!value)
		return err_say(e, -EINVAL, "%s:%d:%d: %s", name, why.line, why.column, why.text);
	*ret = value;
	return 0;
}
