// SPDX-License-Identifier: Apache-2.0
/* config_artifact.c: how artifacts are fetched: client { artifact { … } }. Runs in: the launcher's
 * configuration child, cli. */
#include <ctype.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "config/config_reader.h"

#define UNLIMITED_MS    (31 * 60000) /* "0s": the limit of the whole fetch, as Nomad has it */
#define UNLIMITED_BYTES INT64_MAX
#define VARIABLES_MAX   16

static int
read_timeout(struct config_reader *c, const struct hcl_node *node)
{
	struct config_artifact *a = &c->config->artifact;
	uint64_t *at = strcmp(node->key, "http_read_timeout") == 0 ? &a->http_ms
		       : strcmp(node->key, "git_timeout") == 0     ? &a->git_ms
								   : &a->s3_ms;
	int r = config_get_duration(c, node, 0, at);

	if (r == 0 && *at > INT32_MAX)
		r = config_fail(c, node->at,
		    "%s: expected a duration of at most 24 days, found \"%.64s\"", node->key,
		    node->text);
	if (r == 0 && *at == 0)
		*at = UNLIMITED_MS;
	return r;
}

/* A size such as "100GB", "1.5 GiB" or "4096". */
static bool
parse_size(const char *text, uint64_t *ret)
{
	static const char letters[] = "kmgtpe";
	const char *letter, *unit;
	char *end;
	double n = strtod(text, &end), factor = 1;

	if (end == text || !isfinite(n) || n < 0 ||
	    strspn(text, "0123456789.") != (size_t)(end - text))
		return false;
	for (unit = end; *unit == ' '; unit++)
		;
	letter = *unit ? strchr(letters, *unit | 0x20) : NULL;
	if (letter && *letter) {
		bool binary = (unit[1] | 0x20) == 'i';

		for (const char *at = letters; at <= letter; at++)
			factor *= binary ? 1024 : 1000;
		unit += binary ? 2 : 1;
	}
	if ((*unit | 0x20) == 'b')
		unit++;
	if (*unit || n * factor >= 9e18)
		return false;
	*ret = (uint64_t)(n * factor);
	return true;
}

static int
read_size(struct config_reader *c, const struct hcl_node *node)
{
	struct config_artifact *a = &c->config->artifact;
	uint64_t *at = strcmp(node->key, "http_max_size") == 0 ? &a->http_bytes : &a->unpack_bytes;

	if (node->kind != HCL_NODE_STRING || !parse_size(node->text, at))
		return config_wrong(c, node, node->key, "a size such as \"100GB\"");
	if (*at == 0)
		*at = UNLIMITED_BYTES;
	return 0;
}

static int
read_variables(struct config_reader *c, const struct hcl_node *node)
{
	struct config_artifact *a = &c->config->artifact;
	char names[sizeof a->variables];
	int r = config_get_text(c, node, node->key, names, sizeof names);
	unsigned n = 0;

	for (char *at = names; r == 0 && *at; at++) {
		if (*at == ',' || *at == '\t')
			*at = ' ';
		else if (*at != ' ' && *at != '_' && !isalnum((unsigned char)*at))
			n = VARIABLES_MAX + 1;
		n += *at != ' ' && (at == names || at[-1] == ' ');
	}
	if (r == 0 && n > VARIABLES_MAX)
		r = config_wrong(
		    c, node, node->key, "at most 16 names of variables, with commas between them");
	if (r == 0)
		memcpy(a->variables, names, sizeof names);
	return r;
}

/* "d:rx:/opt/git" is a directory, "f:r:/etc/known" a file. */
static int
read_extra_path(struct config_reader *c, const struct hcl_node *node)
{
	struct config_artifact *a = &c->config->artifact;
	const char *word = node->text, *colon;

	if ((word[0] != 'd' && word[0] != 'f') || word[1] != ':' ||
	    !(colon = strchr(word + 2, ':')) || colon == word + 2 ||
	    strspn(word + 2, "rwxc") != (size_t)(colon - word - 2))
		return config_fail(c, node->at,
		    "filesystem_isolation_extra_paths: expected a text such as \"d:rx:/opt/git\", "
		    "found "
		    "\"%.200s\"",
		    word);
	if (strlen(word) >= ARTIFACT_TEXT_SIZE || a->n_extra_paths == ARTIFACT_PATHS_MAX)
		return config_fail(c, node->at,
		    "filesystem_isolation_extra_paths: expected at most %d paths of at most %d "
		    "bytes",
		    ARTIFACT_PATHS_MAX, ARTIFACT_TEXT_SIZE - 1);
	if (config_check_path(c, node->at, "filesystem_isolation_extra_paths", colon + 1) < 0)
		return -EINVAL;
	(void)strcpy(a->extra_paths[a->n_extra_paths++], word);
	return 0;
}

static int
read_extra_paths(struct config_reader *c, const struct hcl_node *node)
{
	c->config->artifact.n_extra_paths = 0;
	return config_each_string(c, node, node->key, read_extra_path);
}

static int
read_file_dir(struct config_reader *c, const struct hcl_node *node)
{
	struct config_artifact *a = &c->config->artifact;

	if (strlen(node->text) >= ARTIFACT_TEXT_SIZE || a->n_file_dirs == ARTIFACT_PATHS_MAX)
		return config_fail(c, node->at,
		    "file_directories: expected at most %d directories of at most %d bytes",
		    ARTIFACT_PATHS_MAX, ARTIFACT_TEXT_SIZE - 1);
	if (config_check_path(c, node->at, "file_directories", node->text) < 0)
		return -EINVAL;
	(void)strcpy(a->file_dirs[a->n_file_dirs++], node->text);
	return 0;
}

static int
read_file_dirs(struct config_reader *c, const struct hcl_node *node)
{
	c->config->artifact.n_file_dirs = 0;
	return config_each_string(c, node, node->key, read_file_dir);
}

const struct config_attr config_artifact_attrs[] = {
	CALL("http_read_timeout", read_timeout),
	CALL("http_max_size", read_size),
	CALL("git_timeout", read_timeout),
	CALL("s3_timeout", read_timeout),
	NUMBER("decompression_file_count_limit", artifact.unpack_files),
	CALL("decompression_size_limit", read_size),
	BOOL("disable_filesystem_isolation", artifact.no_isolation),
	CALL("set_environment_variables", read_variables),
	CALL("filesystem_isolation_extra_paths", read_extra_paths),
	CALL("file_directories", read_file_dirs),
	UNUSED_AS("disable_artifact_inspection",
	    "has no effect: what an artifact contains is always inspected"),
	UNUSED_AS("gcs_timeout", "has no effect: artifacts of gcs:: are refused"),
	UNUSED_AS("hg_timeout", "has no effect: artifacts of hg:: are refused"),
	{ 0 },
};
