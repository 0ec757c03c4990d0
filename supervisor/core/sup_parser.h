/* SPDX-License-Identifier: Apache-2.0 */
/* sup_parser.h: requests to job-parser. It is started by the first one, and ended after 30 s
 * without one. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_PARSER_H
#define DROVER_SUPERVISOR_CORE_SUP_PARSER_H

#include "supervisor/core/sup_child.h"

struct par_config_evaluate_req;
struct par_job_parse_req;
struct parser_request;

void parser_new(struct sup *sup);
/* After all owners of requests have ended. */
void parser_free(struct sup *sup);

/*
 * Two job files and two configurations are sent at a time, so that neither kind waits for the
 * other; further requests wait. msg is copied, text_fd (the memfd with both texts) taken over. The
 * callback is as that of child_call(), and not called after parser_forget(). The request is freed
 * before the callback runs.
 */
struct parser_request *parser_parse_job(
    struct sup *sup, const struct par_job_parse_req *msg, int text_fd, call_cb *cb, void *arg);
struct parser_request *parser_evaluate_config(struct sup *sup,
    const struct par_config_evaluate_req *msg, int text_fd, call_cb *cb, void *arg);
/* A request that still waits is not sent. Ignores NULL. */
void parser_forget(struct parser_request *p);

/* Makes the memfd with the two texts of a request. Returns it, or -errno. */
int parser_texts(const char *first, size_t first_len, const char *second, size_t second_len);
/* For a callback with r < 0: a sentence about `what`, such as "this job file". */
void parser_explain(int r, const char *what, const struct err *why, struct err *ret);

#endif
