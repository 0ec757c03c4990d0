/* SPDX-License-Identifier: Apache-2.0 */
/*
 * config_reader.h: reads the configuration's tree into the two records: tables of known keys, and
 * functions for values. Runs in: the launcher's configuration child.
 */
#ifndef DROVER_CONFIG_CONFIG_READER_H
#define DROVER_CONFIG_CONFIG_READER_H

#include "config/config.h"
#include "hcl/hcl_tree.h"
#include "proto/agent_config.h"

#define DRIVER_BIT(driver) (1u << (driver))

struct config_reader {
	struct hcl *h;
	struct agent_config *config;
	struct agent_policy *policy;
	struct config_sink *sink;
	uint32_t driver; /* bit of the plugin whose block is read */
};

typedef int config_attr_fn(struct config_reader *c, const struct hcl_node *node);

/* A known attribute or block, and where its value is stored. Such tables end with an empty key; a
 * table whose key is NULL accepts any key. */
struct config_attr {
	const char *key;
	enum config_attr_kind {
		ATTR_CALL,   /* calls fn */
		ATTR_TEXT,   /* char[size] at offset in the configuration; "" leaves the value
				unchanged */
		ATTR_BOOL,   /* bool at offset */
		ATTR_NUMBER, /* uint64_t at offset, up to `most` */
		ATTR_BLOCK,  /* a block with the attributes `inside` */
		ATTR_UNUSED, /* Nomad's, has no effect in drover; `why` says what happens instead;
				such rows are last, because only the first 64 are checked for
				repetition */
	} kind;
	size_t offset, size;
	uint64_t most;
	config_attr_fn *fn;
	const struct config_attr *inside;
	const char *why;
};

#define FIELD(name)                                                                                \
	.offset = offsetof(struct agent_config, name),                                             \
	.size = sizeof(((struct agent_config *)0)->name)
#define TEXT(key_, field)                                                                          \
	{                                                                                          \
		.key = key_, .kind = ATTR_TEXT, FIELD(field)                                       \
	}
#define NUMBER(key_, field)                                                                        \
	{                                                                                          \
		.key = key_, .kind = ATTR_NUMBER, FIELD(field), .most = 1000000000                 \
	}
#define BOOL(key_, field)                                                                          \
	{                                                                                          \
		.key = key_, .kind = ATTR_BOOL, FIELD(field)                                       \
	}
#define PORT(key_, field)                                                                          \
	{                                                                                          \
		.key = key_, .kind = ATTR_NUMBER, FIELD(field), .most = 65535                      \
	}
#define CALL(key_, fn_)                                                                            \
	{                                                                                          \
		.key = key_, .kind = ATTR_CALL, .fn = fn_                                          \
	}
#define BLOCK(key_, inside_)                                                                       \
	{                                                                                          \
		.key = key_, .kind = ATTR_BLOCK, .inside = inside_                                 \
	}
#define UNUSED_AS(key_, why_)                                                                      \
	{                                                                                          \
		.key = key_, .kind = ATTR_UNUSED, .why = why_                                      \
	}

/* Reports "file:line:column: sentence" and the line, as an error. Returns -EINVAL. */
int __attribute__((format(printf, 3, 4)))
config_fail(struct config_reader *c, struct hcl_range at, const char *fmt, ...);
/* Reports "key: expected what, found" and the kind of node. Returns -EINVAL. */
int config_wrong(
    struct config_reader *c, const struct hcl_node *node, const char *key, const char *what);
/* Reports a warning with the position, the key and the reason why it has no effect. */
void config_warn(struct config_reader *c, struct hcl_range at, const char *key, const char *why);

/* Each returns 0 with the value stored, or -EINVAL by config_fail(). */
int config_get_text(
    struct config_reader *c, const struct hcl_node *node, const char *key, char *ret, size_t size);
int config_get_bool(
    struct config_reader *c, const struct hcl_node *node, const char *key, bool *ret);
int config_get_path(struct config_reader *c, const struct hcl_node *node, const char *key,
    char ret[CONFIG_PATH_SIZE]);
/* Reads a whole number up to most. */
int config_get_number(struct config_reader *c, const struct hcl_node *node, const char *key,
    uint64_t most, uint64_t *ret);
/* Reads a duration such as "30s". */
int config_get_duration(
    struct config_reader *c, const struct hcl_node *node, uint64_t least_ms, uint64_t *ret_ms);
/* Checks for an absolute path without "." and ".." and without doubled or trailing slashes. */
int config_check_path(
    struct config_reader *c, struct hcl_range at, const char *key, const char *path);
/* Parses a whole number up to most at *at and moves *at past it. */
bool config_take_number(const char **at, uint64_t most, uint64_t *ret);
/* Calls fn for each element of a list of strings. */
int config_each_string(
    struct config_reader *c, const struct hcl_node *node, const char *key, config_attr_fn *fn);

/* Reads an object with a table; a key that is not in the table gets a warning. Goes on after an
 * error, so that all are reported. */
int config_read_body(
    struct config_reader *c, const struct hcl_node *body, const struct config_attr *known);
/* Reads a block; in JSON also a list of blocks. */
int config_read_blocks(
    struct config_reader *c, const struct hcl_node *node, const struct config_attr *known);

#include "config/config_blocks.h"

#endif
