// SPDX-License-Identifier: Apache-2.0
/* csi_calls.c: the supervisor's requests: channels and calls. Runs in: csi-helper. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "common/clock.h"
#include "common/crash.h"
#include "common/fd.h"
#include "common/mem.h"
#include "common/utf8.h"
#include "csi-helper/csi.h"
#include "proto/csi_helper.pb-c.h"

/* gRPC ends each call at its deadline. If a call is this much later, the process checks once more
 * and then exits. */
#define LATE_MS 1000
/* How long a probe may take that shows whether a channel still works. */
#define PROBE_MS 1000

/* The oneof case of CsiCallReq.call selects the method; CsiCallRep.answer has the same case number
 * for its answer. */
static const struct method {
	uint32_t number;
	const char *name;
} methods[] = {
#define METHOD(case_, service, name)                                                               \
	{                                                                                          \
		CSI_CALL_REQ__CALL_##case_, "/csi.v1." service "/" name                            \
	}
	METHOD(PROBE, "Identity", "Probe"),
	METHOD(GET_PLUGIN_INFO, "Identity", "GetPluginInfo"),
	METHOD(GET_PLUGIN_CAPABILITIES, "Identity", "GetPluginCapabilities"),
	METHOD(NODE_GET_INFO, "Node", "NodeGetInfo"),
	METHOD(NODE_GET_CAPABILITIES, "Node", "NodeGetCapabilities"),
	METHOD(CONTROLLER_GET_CAPABILITIES, "Controller", "ControllerGetCapabilities"),
	METHOD(NODE_STAGE_VOLUME, "Node", "NodeStageVolume"),
	METHOD(NODE_UNSTAGE_VOLUME, "Node", "NodeUnstageVolume"),
	METHOD(NODE_PUBLISH_VOLUME, "Node", "NodePublishVolume"),
	METHOD(NODE_UNPUBLISH_VOLUME, "Node", "NodeUnpublishVolume"),
	METHOD(CREATE_VOLUME, "Controller", "CreateVolume"),
	METHOD(DELETE_VOLUME, "Controller", "DeleteVolume"),
	METHOD(VALIDATE_VOLUME_CAPABILITIES, "Controller", "ValidateVolumeCapabilities"),
	METHOD(CONTROLLER_PUBLISH_VOLUME, "Controller", "ControllerPublishVolume"),
	METHOD(CONTROLLER_UNPUBLISH_VOLUME, "Controller", "ControllerUnpublishVolume"),
	METHOD(CONTROLLER_EXPAND_VOLUME, "Controller", "ControllerExpandVolume"),
	METHOD(LIST_VOLUMES, "Controller", "ListVolumes"),
	METHOD(CREATE_SNAPSHOT, "Controller", "CreateSnapshot"),
	METHOD(DELETE_SNAPSHOT, "Controller", "DeleteSnapshot"),
	METHOD(LIST_SNAPSHOTS, "Controller", "ListSnapshots"),
	METHOD(NODE_EXPAND_VOLUME, "Node", "NodeExpandVolume"),
	METHOD(GET_CAPACITY, "Controller", "GetCapacity"),
	METHOD(CONTROLLER_GET_VOLUME, "Controller", "ControllerGetVolume"),
	METHOD(CONTROLLER_MODIFY_VOLUME, "Controller", "ControllerModifyVolume"),
	METHOD(NODE_GET_VOLUME_STATS, "Node", "NodeGetVolumeStats"),
	METHOD(
	    GROUP_CONTROLLER_GET_CAPABILITIES, "GroupController", "GroupControllerGetCapabilities"),
	METHOD(CREATE_VOLUME_GROUP_SNAPSHOT, "GroupController", "CreateVolumeGroupSnapshot"),
	METHOD(DELETE_VOLUME_GROUP_SNAPSHOT, "GroupController", "DeleteVolumeGroupSnapshot"),
	METHOD(GET_VOLUME_GROUP_SNAPSHOT, "GroupController", "GetVolumeGroupSnapshot"),
#undef METHOD
};

static uint64_t
deadline_ms(const struct csi_call *call)
{
	return call->started_ms + call->timeout_ms;
}

static const struct method *
find_method(uint32_t number)
{
	for (size_t i = 0; i < ELEMENTSOF(methods); i++)
		if (methods[i].number == number)
			return &methods[i];
	return NULL;
}

/* Number 0 finds a free slot. */
static struct csi_open_plugin *
find_plugin(struct csi *csi, uint64_t number)
{
	for (size_t i = 0; i < ELEMENTSOF(csi->plugins); i++)
		if (csi->plugins[i].number == number)
			return &csi->plugins[i];
	return NULL;
}

static void
close_plugin(struct csi *csi, struct csi_open_plugin *plugin)
{
	for (size_t i = 0; i < ELEMENTSOF(csi->calls); i++)
		if (csi->calls[i] && csi->calls[i]->channel == plugin->number)
			csi_call_cancel(csi->calls[i]);
	csi_channel_free(plugin->channel);
	*plugin = (struct csi_open_plugin){ 0 };
}

/* Starts a call, which takes the slot. */
static struct csi_call *
start_in_slot(struct csi *csi, struct csi_call **slot, const struct csi_open_plugin *plugin,
    uint32_t method, const ProtobufCMessage *req, uint32_t timeout_ms)
{
	struct csi_call *call = *slot = mem_new(struct csi_call);

	call->channel = plugin->number;
	call->method = method;
	call->timeout_ms = timeout_ms;
	call->started_ms = clock_ms();
	csi_secrets_take(&call->secrets, req);
	csi_call_start(&csi->grpc, call, plugin->channel, find_method(method)->name, req);
	return call;
}

/* Takes a slot and starts the call, which csi_calls_finish() answers. */
static int
start_call(struct csi *csi, const struct ipc_packet *p, const struct csi_open_plugin *plugin,
    uint32_t method, const ProtobufCMessage *req, uint32_t timeout_ms, struct err *e)
{
	struct csi_call *call;
	size_t i = 0;

	if (timeout_ms == 0 || timeout_ms > CSI_TIMEOUT_MAX_MS)
		return err_say(e, -EINVAL, "a call's timeout must be 1 to %d ms, not %u",
		    CSI_TIMEOUT_MAX_MS, timeout_ms);
	while (i < ELEMENTSOF(csi->calls) && csi->calls[i])
		i++;
	if (i == ELEMENTSOF(csi->calls))
		return err_say(e, -EBUSY, "%d calls to plugins are in progress, which is the limit",
		    CSI_CALLS_MAX);
	call = start_in_slot(csi, &csi->calls[i], plugin, method, req, timeout_ms);
	call->type = p->type;
	call->serial = p->serial;
	return 0;
}

int
csi_on_plugin_open(
    struct csi *csi, const struct ipc_packet *p, const CsiPluginOpenReq *req, struct err *e)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	struct csi_open_plugin *plugin = find_plugin(csi, 0);
	cleanup_close int fd = -1;
	int r;

	if (req->channel == 0)
		return err_say(e, -EINVAL, "a channel needs a number");
	if (find_plugin(csi, req->channel))
		return err_say(
		    e, -EEXIST, "channel %llu is already open", (unsigned long long)req->channel);
	if (!plugin)
		return err_say(e, -EBUSY, "%d channels to plugins are open, which is the limit",
		    CSI_CHANNELS_MAX);
	/* gRPC gets a duplicate; the packet closes its own descriptor. */
	fd = fcntl(p->fds[0], F_DUPFD_CLOEXEC, 0);
	if (fd < 0 || fd_set_nonblock(fd, true) < 0)
		return err_set(e, -errno, "open a channel");
	plugin->channel = csi_channel_new(steal_fd(&fd));
	plugin->number = req->channel;
	r = start_call(
	    csi, p, plugin, CSI_CALL_REQ__CALL_PROBE, &probe.base, req->probe_timeout_ms, e);
	if (r < 0) {
		close_plugin(csi, plugin);
		return r;
	}
	return PROC_LATER;
}

int
csi_on_plugin_close(struct csi *csi, const CsiPluginCloseReq *req, struct err *e)
{
	struct csi_open_plugin *plugin = req->channel ? find_plugin(csi, req->channel) : NULL;

	if (!plugin)
		return err_say(
		    e, -ENOENT, "channel %llu is not open", (unsigned long long)req->channel);
	close_plugin(csi, plugin);
	return 0;
}

/* Returns the message of a oneof case: each is a pointer at its field's offset. */
static ProtobufCMessage **
embedded(ProtobufCMessage *msg, uint32_t number, const ProtobufCMessageDescriptor **ret_desc)
{
	const ProtobufCFieldDescriptor *f =
	    protobuf_c_message_descriptor_get_field(msg->descriptor, number);

	if (ret_desc)
		*ret_desc = f->descriptor;
	return (ProtobufCMessage **)(void *)((uint8_t *)msg + f->offset);
}

int
csi_on_call(struct csi *csi, const struct ipc_packet *p, const CsiCallReq *req, struct err *e)
{
	ProtobufCMessage *msg = (ProtobufCMessage *)(uintptr_t)req;
	struct csi_open_plugin *plugin = req->channel ? find_plugin(csi, req->channel) : NULL;
	int r;

	if (!find_method(req->call_case))
		return err_say(e, -EINVAL, "a call needs a method");
	if (!plugin)
		/* The channel belonged to the previous csi-helper. This error makes the supervisor
		 * open it again; -ENOENT would look like a plugin's answer. */
		return err_say(
		    e, -ECONNRESET, "channel %llu is not open", (unsigned long long)req->channel);
	CRASH_POINT(CSI_BEFORE_CALL);
	r = start_call(csi, p, plugin, req->call_case, *embedded(msg, req->call_case, NULL),
	    req->timeout_ms, e);
	return r < 0 ? r : PROC_LATER;
}

void
csi_on_call_cancel(struct csi *csi, const CsiCallCancelEv *ev)
{
	for (size_t i = 0; i < ELEMENTSOF(csi->calls); i++) {
		struct csi_call *call = csi->calls[i];

		if (call && call->type != CSI_PLUGIN_OPEN_REQ && ev->call != 0 &&
		    call->serial == ev->call)
			csi_call_cancel(call);
	}
}

/* Returns true if the call has this status and a message that contains the part. */
static bool
status_is(const struct csi_call *call, int status, const char *part)
{
	return call->result.status == status &&
	       memmem(call->result.message, call->result.message_len, part, strlen(part));
}

/* gRPC reports its own failures as statuses too, known by their texts. If a plugin uses such a
 * text, the effect of its call counts as unknown, which is safe. LOST is found by a probe. */
static CsiCallRep__Origin
find_origin(const struct csi_call *call)
{
	if (call->result.status == GRPC_STATUS_CANCELLED && call->cancelled)
		return CSI_CALL_REP__ORIGIN__CANCELLED;
	if (call->result.status == GRPC_STATUS_DEADLINE_EXCEEDED && clock_ms() >= deadline_ms(call))
		return CSI_CALL_REP__ORIGIN__DEADLINE;
	if (status_is(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "message larger than max") ||
	    status_is(call, GRPC_STATUS_RESOURCE_EXHAUSTED, "metadata size exceeds limit"))
		return CSI_CALL_REP__ORIGIN__TOO_LARGE;
	if (status_is(call, call->result.status, "Received RST_STREAM"))
		return CSI_CALL_REP__ORIGIN__RESET;
	return CSI_CALL_REP__ORIGIN__PLUGIN;
}

/* Writes the text of gRPC or of the plugin, without the secrets of the request, as one printable
 * line. */
static void
say_status(const struct csi_call *call, CsiCallRep__Origin origin, char message[CSI_MESSAGE_SIZE])
{
	char said[CSI_MESSAGE_SIZE + 3]; /* with the whole of a character that does not fit */

	switch (origin) {
	case CSI_CALL_REP__ORIGIN__DEADLINE:
		(void)snprintf(
		    message, CSI_MESSAGE_SIZE, "no answer within %u ms", call->timeout_ms);
		break;
	case CSI_CALL_REP__ORIGIN__TOO_LARGE:
		(void)snprintf(message, CSI_MESSAGE_SIZE,
		    "its answer is larger than %d KiB, or has a status text above %d KiB",
		    CSI_ANSWER_BYTES_MAX / 1024, CSI_METADATA_BYTES_MAX / 1024);
		break;
	default:
		(void)utf8_sanitize(message, CSI_MESSAGE_SIZE, said,
		    csi_secrets_hide(&call->secrets, call->result.message, call->result.message_len,
			said, sizeof said));
	}
}

static void
refuse_answer(
    CsiCallRep *rep, CsiCallRep__Origin origin, const char *why, char message[CSI_MESSAGE_SIZE])
{
	csi_call_rep__init(rep);
	rep->grpc_status = GRPC_STATUS_INTERNAL;
	rep->origin = origin;
	(void)snprintf(message, CSI_MESSAGE_SIZE, "the plugin's answer cannot be used: %s", why);
	rep->grpc_message = message;
}

/* Hides secrets in the only text of an answer that is shown as an error. */
static void
hide_in_answer(const struct csi_call *call, ProtobufCMessage *answer)
{
	char said[CSI_MESSAGE_SIZE];
	Csi__V1__ValidateVolumeCapabilitiesResponse *v;
	size_t n;

	if (call->method != CSI_CALL_REQ__CALL_VALIDATE_VOLUME_CAPABILITIES)
		return;
	v = (Csi__V1__ValidateVolumeCapabilitiesResponse *)answer;
	if (!*v->message)
		return;
	n = csi_secrets_hide(&call->secrets, v->message, strlen(v->message), said, sizeof said);
	free(v->message);
	v->message = mem_alloc(n + 1);
	(void)utf8_sanitize(v->message, n + 1, said, n);
}

/* Puts the call's answer into rep, or the status INTERNAL with the reason if the answer is invalid.
 */
static void
fill_answer(const struct csi_call *call, struct csi_answer *answer, CsiCallRep *rep,
    char message[CSI_MESSAGE_SIZE])
{
	const ProtobufCMessageDescriptor *desc;
	ProtobufCMessage **at = embedded(&rep->base, call->method, &desc);
	struct err e = { 0 };

	if (!call->result.data) {
		refuse_answer(rep, CSI_CALL_REP__ORIGIN__INVALID, "it is empty", message);
		return;
	}
	if (csi_answer_decode(desc, call->result.data, call->result.len, answer, &e) < 0) {
		refuse_answer(rep, CSI_CALL_REP__ORIGIN__INVALID, e.msg, message);
		return;
	}
	hide_in_answer(call, answer->msg);
	rep->answer_case = (CsiCallRep__AnswerCase)call->method;
	*at = answer->msg;
}

/* Sends the end of a call, in a memfd if it is too large for a packet. */
static int
send_rep(
    const struct csi_call *call, const struct csi_answer *answer, CsiCallRep *rep, struct err *e)
{
	CsiCallBigRep big = CSI_CALL_BIG_REP__INIT;
	char message[CSI_MESSAGE_SIZE];
	cleanup_close int fd = -1;
	struct err why = { 0 };

	if (answer->used > CSI_ANSWER_INLINE ||
	    protobuf_c_message_get_packed_size(&rep->base) > CSI_INLINE_BYTES_MAX) {
		fd = ipc_protobuf_put(&rep->base, CSI_REP_BYTES_MAX, &why);
		if (fd >= 0)
			return proc_answer(
			    &csi_helper, CSI_CALL_BIG_REQ, call->serial, 0, &big.base, fd, NULL, e);
		refuse_answer(rep, CSI_CALL_REP__ORIGIN__TOO_LARGE, why.msg, message);
	}
	return proc_answer(&csi_helper, CSI_CALL_REQ, call->serial, 0, &rep->base, -1, NULL, e);
}

static int
answer_call(const struct csi_call *call, bool lost, struct err *e)
{
	cleanup_csi_answer struct csi_answer answer = { 0 };
	char message[CSI_MESSAGE_SIZE] = "";
	CsiCallRep rep = CSI_CALL_REP__INIT;

	if (call->result.status == GRPC_STATUS_OK) {
		fill_answer(call, &answer, &rep, message);
	} else {
		rep.origin = lost ? CSI_CALL_REP__ORIGIN__LOST : find_origin(call);
		/* RESOURCE_EXHAUSTED would say that the plugin has no space. */
		rep.grpc_status = rep.origin == CSI_CALL_REP__ORIGIN__TOO_LARGE
				      ? GRPC_STATUS_INTERNAL
				      : (uint32_t)call->result.status;
		say_status(call, rep.origin, message);
		rep.grpc_message = message;
	}
	if (rep.grpc_status != GRPC_STATUS_OK)
		log_debug("%s: %s: %s", find_method(call->method)->name,
		    csi_status_name((int)rep.grpc_status), message);
	return send_rep(call, &answer, &rep, e);
}

static int
open_failed(const struct csi_call *call, struct err *why)
{
	char message[CSI_MESSAGE_SIZE];

	say_status(call, find_origin(call), message);
	switch (call->result.status) {
	case GRPC_STATUS_DEADLINE_EXCEEDED:
		return err_say(why, -ETIMEDOUT, "probe the plugin: %s", message);
	case GRPC_STATUS_UNAVAILABLE:
		return err_say(why, -ECONNRESET, "probe the plugin: UNAVAILABLE: %s", message);
	case GRPC_STATUS_CANCELLED:
		return err_say(why, -ECANCELED, "probe the plugin: the channel was closed");
	default:
		return err_say(why, -EIO, "probe the plugin: %s: %s",
		    csi_status_name(call->result.status), message);
	}
}

/* The channel stays open only if the first probe succeeded. */
static int
answer_open(struct csi *csi, struct csi_call *call, struct err *e)
{
	CsiPluginOpenRep rep = CSI_PLUGIN_OPEN_REP__INIT;
	struct csi_open_plugin *plugin = find_plugin(csi, call->channel);
	cleanup_csi_answer struct csi_answer answer = { 0 };
	const Csi__V1__ProbeResponse *probe;
	struct err why = { 0 };
	int r;

	if (call->result.status != GRPC_STATUS_OK)
		r = open_failed(call, &why);
	else if (csi_answer_decode(&csi__v1__probe_response__descriptor, call->result.data,
		     call->result.len, &answer, &why) < 0)
		r = err_prefix(&why, "probe the plugin");
	else
		r = 0;
	csi_grpc_trim();
	if (r == 0) {
		probe = (const Csi__V1__ProbeResponse *)(const void *)answer.msg;
		rep.ready = !probe->ready || probe->ready->value;
	} else if (plugin) {
		close_plugin(csi, plugin);
	}
	return proc_answer(&csi_helper, call->type, call->serial, r, &rep.base, -1, &why, e);
}

/* UNAVAILABLE comes from the plugin, or from gRPC if the connection has ended: then a probe ends so
 * too. Starts one in the call's slot; it ends through csi_calls_finish(). */
static void
ask_if_lost(struct csi *csi, struct csi_call **slot, struct csi_call *call)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	const struct csi_open_plugin *plugin = find_plugin(csi, call->channel);

	start_in_slot(csi, slot, plugin, CSI_CALL_REQ__CALL_PROBE, &probe.base, PROBE_MS)->about =
	    call;
}

/* Answers the request of a call that has ended, unless a probe has to end first. slot is the
 * call's, and empty. */
static int
finish_call(struct csi *csi, struct csi_call **slot, struct csi_call *call, struct err *e)
{
	bool unavailable = call->result.status == GRPC_STATUS_UNAVAILABLE;
	struct csi_call *about = call->about;
	int r;

	if (call->type == CSI_PLUGIN_OPEN_REQ) {
		CRASH_POINT(CSI_AFTER_OPEN);
		r = answer_open(csi, call, e);
	} else if (!about && unavailable && find_plugin(csi, call->channel)) {
		ask_if_lost(csi, slot, call);
		return 0;
	} else {
		CRASH_POINT(CSI_AFTER_CALL);
		r = answer_call(about ?: call, unavailable || (about && call->cancelled), e);
	}
	if (about)
		csi_call_free(about);
	csi_call_free(call);
	return r;
}

int
csi_calls_finish(struct csi *csi, struct err *e)
{
	struct csi_call *call;
	size_t i;
	int r = 0;

	while (r == 0 && (call = csi_grpc_next(&csi->grpc))) {
		csi->late_since_ms = 0;
		for (i = 0; csi->calls[i] != call; i++)
			continue;
		csi->calls[i] = NULL;
		r = finish_call(csi, &csi->calls[i], call, e);
	}
	return r;
}

/* Finds the call with the earliest deadline. */
static const struct csi_call *
first_to_end(const struct csi *csi)
{
	const struct csi_call *first = NULL;

	for (size_t i = 0; i < ELEMENTSOF(csi->calls); i++)
		if (csi->calls[i] && (!first || deadline_ms(csi->calls[i]) < deadline_ms(first)))
			first = csi->calls[i];
	return first;
}

int
csi_calls_timeout_ms(struct csi *csi, struct err *e)
{
	const struct csi_call *first = first_to_end(csi);
	uint64_t now = clock_ms();

	if (!first || now < deadline_ms(first) + LATE_MS) {
		csi->late_since_ms = 0;
		return first ? (int)(deadline_ms(first) + LATE_MS - now) : -1;
	}
	if (csi->late_since_ms == 0)
		csi->late_since_ms = now;
	if (now < csi->late_since_ms + LATE_MS)
		return (int)(csi->late_since_ms + LATE_MS - now);
	(void)err_say(e, -ETIMEDOUT, "gRPC has not ended %s at its deadline",
	    find_method(first->method)->name);
	return 0;
}
