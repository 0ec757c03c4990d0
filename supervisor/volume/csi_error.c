// SPDX-License-Identifier: Apache-2.0
/* csi_error.c: what the gRPC status of a CSI call means, and the error for it. Runs in: supervisor.
 */
#include "supervisor/volume/csi_error.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>

#include "common/cleanup.h"

#define EFFECT_NONE    false
#define EFFECT_UNKNOWN true

static const struct call_text {
	CsiCallReq__CallCase call;
	const char *name, *half;
	bool once;
} calls[] = {
#define CSI_CALL(call_, name_, half_, once_) { CSI_CALL_REQ__CALL_##call_, name_, half_, once_ },
#include "supervisor/volume/csi_codes.def"
};

static const struct {
	uint32_t status;
	struct csi_outcome outcome;
} codes[] = {
#define CSI_CODE(status_, name_, errno_, verdict_, effect_, meaning_)                              \
	{ status_, { -(errno_), name_, CSI_##verdict_, EFFECT_##effect_, meaning_ } },
#include "supervisor/volume/csi_codes.def"
};

static const struct {
	CsiCallReq__CallCase call;
	uint32_t status;
	enum csi_verdict verdict;
	bool unknown;
	const char *meaning;
} rules[] = {
#define CSI_RULE(call_, status_, verdict_, effect_, meaning_)                                      \
	{ CSI_CALL_REQ__CALL_##call_, status_, CSI_##verdict_, EFFECT_##effect_, meaning_ },
#include "supervisor/volume/csi_codes.def"
};

static const struct csi_outcome origins[] = {
#define CSI_ORIGIN(origin_, name_, errno_, verdict_, meaning_)                                     \
	[CSI_CALL_REP__ORIGIN__##origin_] = { -(errno_), name_, CSI_##verdict_, true, meaning_ },
#include "supervisor/volume/csi_codes.def"
};

static const struct call_text *
find_call(CsiCallReq__CallCase call)
{
	static const struct call_text none = { CSI_CALL_REQ__CALL__NOT_SET, "?", "", true };

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		if (calls[i].call == call)
			return &calls[i];
	return &none;
}

const char *
csi_call_name(CsiCallReq__CallCase call)
{
	return find_call(call)->name;
}

bool
csi_call_is_once(CsiCallReq__CallCase call)
{
	return find_call(call)->once;
}

struct csi_outcome
csi_outcome(CsiCallReq__CallCase call, uint32_t status)
{
	struct csi_outcome o = { -EIO, "Code", CSI_FINAL, true,
		"the plugin answered with a status that does not exist" };

	if (status == GRPC_OK)
		return (struct csi_outcome){ 0, "OK", CSI_DONE, false, "" };
	for (size_t i = 0; i < ELEMENTSOF(codes); i++)
		if (codes[i].status == status)
			o = codes[i].outcome;
	for (size_t i = 0; i < ELEMENTSOF(rules); i++) {
		if (rules[i].call != call || rules[i].status != status)
			continue;
		o.verdict = rules[i].verdict;
		o.unknown = rules[i].unknown;
		o.meaning = rules[i].meaning;
	}
	if (o.verdict == CSI_DONE)
		o.code = 0;
	return o;
}

struct csi_outcome
csi_outcome_of(CsiCallReq__CallCase call, const CsiCallRep *rep)
{
	struct csi_outcome o = csi_outcome(call, rep->grpc_status);

	if (rep->origin <= 0 || rep->origin >= ELEMENTSOF(origins))
		return o;
	o.code = origins[rep->origin].code;
	o.verdict = origins[rep->origin].verdict;
	o.meaning = origins[rep->origin].meaning;
	o.unknown = true;
	return o;
}

int
csi_error(CsiCallReq__CallCase call, const char *plugin, const CsiCallRep *rep, unsigned tries,
    struct err *e)
{
	const struct csi_outcome o = csi_outcome_of(call, rep);
	char tried[48] = "";

	if (o.code == 0)
		return 0;
	if (tries > 1)
		(void)snprintf(tried, sizeof tried, " (tried %u times)", tries);
	/* As gRPC for Go prints it: servers search for the name of the code. */
	return err_say(e, o.code, "%s of plugin %s%s: %s%s: rpc error: code = %s desc = %s",
	    csi_call_name(call), plugin, tried,
	    o.code == -EIO && rep->grpc_status == GRPC_INTERNAL ? find_call(call)->half : "",
	    o.meaning, o.name, rep->grpc_message);
}
