/* SPDX-License-Identifier: Apache-2.0 */
/*
 * check_probe.h: one try of one check: a connection, and for http a request. It consists of events
 * of the work loop, which it never blocks. Runs in: supervisor.
 */
#ifndef DROVER_SUPERVISOR_SERVICE_CHECK_PROBE_H
#define DROVER_SUPERVISOR_SERVICE_CHECK_PROBE_H

#include <stdbool.h>

#include "supervisor/service/http_target.h"
#include "supervisor/core/sup.h"

/* What a check requests, and where. */
struct check_spec {
	bool http, tls, skip_verify; /* tls: check-helper makes the request */
	union check_addr addr;
	char *path; /* for http, as http_target_set_path() takes it */
	char *method;
	char *headers; /* lines, each with its CRLF; "": none */
	char *host;    /* the header Host; NULL: the address */
	char *
	    server_name; /* for tls: the name that the certificate must be for; NULL: the address */
	char *body;      /* "": none */
	bool has_agent;  /* the headers have a User-Agent */
};

struct check_outcome {
	bool passed;
	int status; /* for http; 0: there was no answer */
	const char *output;
	bool over_tls; /* check-helper made the request, or was to make it */
	bool later; /* a redirect led to https while too many probes were in progress: no result */
};

struct check_probe;

void check_probes_new(struct sup *sup);
void check_probes_free(struct sup *sup);

/* Returns true if one more probe may start. Each has a descriptor in this process, or memory in
 * check-helper, which accepts no more; other parts need descriptors too. A probe that is redirected
 * to https counts as one over TLS from then on. */
#define CHECK_PROBES_MAX     1024
#define CHECK_TLS_PROBES_MAX 256
bool check_probe_may_start(struct sup *sup, bool over_tls);

/* The end of a probe, called once. The output is valid until it returns; the probe is freed then.
 */
typedef void check_probe_cb(void *arg, const struct check_outcome *outcome);

/*
 * Starts a probe. over_tls: spec->tls, or an earlier try was redirected to https. spec must not
 * change until the end. The callback may come within the call, but after *ret is set. The caller
 * watches the timeout and calls check_probe_expire(), which calls back within. For a probe over TLS
 * it waits CHECK_TLS_GRACE_MS longer, because check-helper watches the timeout too and knows where
 * it was.
 */
#define CHECK_TLS_GRACE_MS 1000
void check_probe_start(struct sup *sup, const struct check_spec *spec, bool over_tls,
    int64_t timeout_ns, check_probe_cb *cb, void *arg, struct check_probe **ret);
void check_probe_expire(struct check_probe *p);
/* Cancels the probe without calling back. Ignores NULL. */
void check_probe_free(struct check_probe *p);

#endif
