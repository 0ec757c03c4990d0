// SPDX-License-Identifier: Apache-2.0
/* fuzz_task_spec.c: any bytes as a task spec. Its texts are inside it and end with a NUL, and
 * writing them again gives the same spec. The paths of its files lead down only. */
#include <errno.h>
#include <string.h>

#include "common/spec.h"
#include "tests/fuzz/fuzz.h"

static void
check_file(const struct spec_entry *entry)
{
	struct spec_file file;
	const char *part;

	if (spec_file_parse(entry->text, &file) < 0)
		return;
	HOLDS(file.path > entry->text && file.path < entry->text + entry->len);
	HOLDS(file.mode <= 0777 && file.uid >= -1 && file.gid >= -1);
	for (part = file.path; *part; part += part[0] == '/') {
		size_t len = strcspn(part, "/");

		HOLDS(len > 0 && !(len == 1 && *part == '.') && strncmp(part, "../", 3) != 0);
		HOLDS(strcmp(part, "..") != 0);
		part += len;
	}
	HOLDS(part[-1] != '/');
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct spec_writer w = { 0 };
	struct spec_entry entry;
	size_t at = 0, before = 0;
	int r;

	while ((r = spec_next(data, size, &at, &entry)) == 1) {
		HOLDS(at > before && at <= size);
		before = at;
		HOLDS(entry.text[entry.len] == '\0');
		HOLDS(entry.tag == SPEC_FILE_DATA || strlen(entry.text) == entry.len);
		if (entry.tag == SPEC_FILE)
			check_file(&entry);
		spec_add(&w, (enum spec_tag)entry.tag, entry.text, entry.len);
	}
	HOLDS(r == 0 || r == -EBADMSG);
	HOLDS(w.failed || w.in_memfd > 0 ||
	      (w.len == before && (before == 0 || memcmp(w.buf, data, before) == 0)));
	spec_writer_done(&w);
	return 0;
}
