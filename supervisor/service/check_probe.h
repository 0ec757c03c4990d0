/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_probe.h: one try of one check: a connection, and for http a request, by the work loop's own
 * events and never waiting. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECK_PROBE_H
#define DROVER_SUPERVISOR_SERVICE_CHECK_PROBE_H

#include <stdbool.h>

#include "supervisor/service/http_target.h"
#include "supervisor/core/sup.h"

/* What to ask, and where. Strings are the spec's own. */
struct check_spec {
	bool http, tls, skip_verify; /* tls: by check-helper */
	union check_addr addr;
	char *path; /* of http, as http_target_set_path() takes it */
	char *method;
	char *headers;     /* lines, each with its end; "" none */
	char *host;        /* NULL: the address */
	char *server_name; /* of tls: who the certificate has to be for; NULL: the address */
	char *body;        /* "" none */
	bool has_agent;    /* the headers name a User-Agent */
};

struct check_outcome {
	bool passed;
	int status; /* of http; 0: no answer came */
	const char *output;
	bool over_tls; /* it was asked by check-helper, or was to be */
	bool later;    /* a redirection led there while too many were under way: nothing came out */
};

struct check_probe;

/* Whether one more may be under way. Each has a descriptor here, or over TLS memory in
 * check-helper, which takes no more of them; others need some too. One that is redirected to TLS
 * is one of those from then on. */
#define CHECK_PROBES_MAX     1024
#define CHECK_TLS_PROBES_MAX 256
bool check_probe_has_room(bool over_tls);

/* The end, once; output lives until the return. The probe is no more. */
typedef void check_probe_cb(void *arg, const struct check_outcome *outcome);

/*
 * over_tls: the spec's, or it was found to lead there. spec stays as it is until the end. The
 * callback may come within the call, but after *ret is set. The caller watches the time, and calls
 * check_probe_expire() when it is over: the callback comes within that. Over TLS check-helper
 * watches it too, and knows more; CHECK_TLS_GRACE_MS are for that.
 */
#define CHECK_TLS_GRACE_MS 1000
void check_probe_start(struct sup *sup, const struct check_spec *spec, bool over_tls,
    int64_t timeout_ns, check_probe_cb *cb, void *arg, struct check_probe **ret);
void check_probe_expire(struct check_probe *p);
/* Nobody waits for it any more; NULL is ignored. */
void check_probe_free(struct check_probe *p);

#endif
