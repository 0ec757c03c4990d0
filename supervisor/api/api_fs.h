/* SPDX-License-Identifier: Apache-2.0 */
/* api_fs.h: handlers of this node's streams, and their content types. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_FS_H
#define DROVER_SUPERVISOR_API_API_FS_H

#include "supervisor/http/api.h"

#define TYPE_TEXT  "text/plain"
#define TYPE_BYTES "application/octet-stream"
#define TYPE_JSON  "application/json"

struct rpc_fs_list_rep;
void api_reply_files(struct api_req *req, const struct rpc_fs_list_rep *files);

#endif
