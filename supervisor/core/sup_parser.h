/* SPDX-License-Identifier: Apache-2.0 */
/* sup_parser.h: requests to job-parser. It is started by the first one, and ended after 30 s
 * without one. Runs in: supervisor. */
#ifndef DROVER_SUPERVISOR_CORE_SUP_PARSER_H
#define DROVER_SUPERVISOR_CORE_SUP_PARSER_H

#include "proto/ipc_records.h"
#include "supervisor/core/sup_child.h"

struct parser_request;

void parser_new(struct sup *sup);
/* After all owners of requests have ended. */
void parser_free(struct sup *sup);

enum parser_kind { PARSE_JOB, EVALUATE_CONFIG, PARSER_KINDS };

struct parser_msg {
	enum parser_kind kind;
	union {
		struct par_job_parse_req job;
		struct par_config_evaluate_req config;
	};
};

/*
 * Two job files and two configurations are sent at a time, so that neither kind waits for the
 * other; further requests wait. text_fd, the memfd with both texts, is taken over. The callback is
 * as that of child_call(), and not called after parser_forget(). The request is freed before the
 * callback runs.
 */
struct parser_request *parser_ask(
    struct sup *sup, const struct parser_msg *msg, int text_fd, call_cb *cb, void *arg);
/* A request that still waits is not sent. Ignores NULL. */
void parser_forget(struct parser_request *p);

/* Makes the memfd with the two texts of a request. Returns it, or -errno. */
int parser_texts(const char *first, size_t first_len, const char *second, size_t second_len);
/* For a callback with r < 0: a sentence about `what`, such as "this job file". */
void parser_explain(int r, const char *what, const struct err *why, struct err *ret);

#endif
