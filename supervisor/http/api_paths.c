// SPDX-License-Identifier: Apache-2.0
/* api_paths.c: the methods and patterns of api_paths.def. Runs in: supervisor. */
#include "supervisor/http/api_paths.h"

#define yes  API_DURABLE
#define last API_LAST
#define no   API_NOT_DURABLE

const struct api_path api_paths[API_PATHS] = {
#define API_PATH(method, pattern, durable, need, ...) { #method, pattern, durable, #need },
#include "supervisor/http/api_paths.def"
#undef API_PATH
};
