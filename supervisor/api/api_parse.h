/* SPDX-License-Identifier: Apache-2.0 */
/* api_parse.h: the requests that wait for job-parser. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_API_API_PARSE_H
#define DROVER_SUPERVISOR_API_API_PARSE_H

struct sup;

void parse_queue_new(struct sup *sup);
/* After api_free(), which ends the requests. */
void parse_queue_free(struct sup *sup);

#endif
