/* SPDX-License-Identifier: Apache-2.0 */
/* artifact_config.h: the part of the configuration about artifacts. Runs in: every process. */
#ifndef DROVER_PROTO_ARTIFACT_CONFIG_H
#define DROVER_PROTO_ARTIFACT_CONFIG_H

#include <stdbool.h>
#include <stdint.h>

#define ARTIFACT_PATHS_MAX 16
#define ARTIFACT_TEXT_SIZE 256

/* client { artifact }: docs/configuration.md has the settings. */
struct config_artifact {
	uint64_t http_ms, git_ms, s3_ms;   /* what a transfer may take; default 30 min */
	uint64_t http_bytes, unpack_bytes; /* default 100 GB */
	uint64_t unpack_files;             /* 0: no limit */
	bool no_isolation;
	char variables[ARTIFACT_TEXT_SIZE]; /* names of the agent's variables that the fetcher gets
					     */
	uint32_t n_extra_paths, n_file_dirs;
	char extra_paths[ARTIFACT_PATHS_MAX][ARTIFACT_TEXT_SIZE];
	/* Directories of this machine whose files jobs may name as sources. */
	char file_dirs[ARTIFACT_PATHS_MAX][ARTIFACT_TEXT_SIZE];
};

#endif
