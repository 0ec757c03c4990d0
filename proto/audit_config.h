/* SPDX-License-Identifier: Apache-2.0 */
/* audit_config.h: the audit block of the configuration. Runs in: the launcher's configuration
 * child, supervisor. */
#ifndef DROVER_PROTO_AUDIT_CONFIG_H
#define DROVER_PROTO_AUDIT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#include "proto/config_sizes.h"

#define AUDIT_FILTERS_MAX  16
#define AUDIT_PATTERNS_MAX 24 /* of one filter */
#define AUDIT_PATTERN_SIZE 96

/* The property of a request that a filter compares with its patterns. */
enum audit_member { AUDIT_ENDPOINT, AUDIT_STAGE, AUDIT_OPERATION, AUDIT_MEMBERS };

struct config_audit_filter {
	char name[CONFIG_NAME_SIZE];
	uint32_t n_patterns;
	struct config_audit_pattern {
		uint32_t member;
		char text[AUDIT_PATTERN_SIZE]; /* '*' stands for any text */
	} patterns[AUDIT_PATTERNS_MAX];
};

struct config_audit {
	bool enabled;
	bool best_effort; /* a request whose entry cannot be written goes on */
	uint32_t mode;    /* permissions of the files */
	char
	    sink[CONFIG_NAME_SIZE]; /* its name; empty: the one that exists without configuration */
	char path[CONFIG_PATH_SIZE]; /* empty: audit/audit.log in the data directory */
	uint64_t rotate_bytes;       /* a file is closed when it would exceed this; 0: never */
	uint64_t rotate_ms;          /* … or when it is this old */
	uint64_t rotate_max_files;   /* how many closed files are kept; 0: all */
	uint32_t n_filters;          /* each excludes the entries that it matches */
	struct config_audit_filter filters[AUDIT_FILTERS_MAX];
};

#endif
