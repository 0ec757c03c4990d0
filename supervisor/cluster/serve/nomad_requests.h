/* SPDX-License-Identifier: Apache-2.0 */
/* nomad_requests.h: handlers of servers' requests. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_REQUESTS_H
#define DROVER_SUPERVISOR_CLUSTER_SERVE_NOMAD_REQUESTS_H

#include "supervisor/cluster/node/nomad.h"

/* The methods that servers may call. */
extern const struct link_method nomad_methods[];

/* Answer a request. nomad_answer() leaves out members that have no value; the commands of some
 * versions read each member of other answers without a check. */
void nomad_answer(struct sup *sup, uint64_t stream, const struct type *type, const void *rep);
void nomad_answer_whole(struct sup *sup, uint64_t stream, const struct type *type, const void *rep);
void nomad_answer_empty(struct sup *sup, uint64_t stream);
/* Returns a copy of the stream's number, as the argument of a callback, which frees it. */
uint64_t *nomad_keep_stream(uint64_t stream);

/* nomad_fs.c: FileSystem.List, Stat, Stream, Logs: methods of link.h. */
void nomad_fs_list(struct sup *sup, uint64_t stream, const void *body, size_t len);
void nomad_fs_stat(struct sup *sup, uint64_t stream, const void *body, size_t len);
void nomad_fs_stream(struct sup *sup, uint64_t stream, const void *body, size_t len);
void nomad_fs_logs(struct sup *sup, uint64_t stream, const void *body, size_t len);
/* Agent.Monitor. */
void nomad_monitor_export(struct sup *sup, uint64_t stream, const void *body, size_t len);
void nomad_monitor(struct sup *sup, uint64_t stream, const void *body, size_t len);

/* nomad_exec.c: Allocations.Exec. */
void nomad_exec(struct sup *sup, uint64_t stream, const void *body, size_t len);

#endif
