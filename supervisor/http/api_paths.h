/* SPDX-License-Identifier: Apache-2.0 */
/* api_paths.h: the paths of api_paths.def, numbered in their order there. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_HTTP_API_PATHS_H
#define DROVER_SUPERVISOR_HTTP_API_PATHS_H

struct api_path {
	const char *method, *pattern;
	enum api_durable { API_NOT_DURABLE, API_DURABLE, API_LAST } durable;
	const char *need; /* the name of its permission: this layer does not know what it means */
};

enum {
#define API_PATH(...) +1
	API_PATHS = 0
#include "supervisor/http/api_paths.def"
#undef API_PATH
};

extern const struct api_path api_paths[API_PATHS];

#endif
