// SPDX-License-Identifier: Apache-2.0
/* test_csi_answer.c: decodes plugins' answers. */
/* link: csi-helper */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/ipc_protobuf.h"
#include "csi-helper/csi_answer.h"
#include "proto/csi_helper.pb-c.h"
#include "tests/unit/unit.h"

#define INFO (&csi__v1__get_plugin_info_response__descriptor)
#define CAPS (&csi__v1__controller_get_capabilities_response__descriptor)

static struct csi_answer answer;

static int
decode(const ProtobufCMessageDescriptor *desc, const char *bytes, size_t len)
{
	struct err e = { 0 };
	int r;

	csi_answer_done(&answer);
	r = csi_answer_decode(desc, (const uint8_t *)bytes, len, &answer, &e);

	ck_assert(r == 0 || (r == e.code && e.msg[0] != '\0'));
	return r;
}

#define DECODE(desc, bytes) decode(desc, bytes, sizeof bytes - 1)

START_TEST(an_answer_is_decoded)
{
	const Csi__V1__GetPluginInfoResponse *info;

	ck_assert_int_eq(DECODE(INFO, "\x0a\x01n\x12\x02v1\x1a\x06\x0a\x01k\x12\x01w"), 0);
	info = (const Csi__V1__GetPluginInfoResponse *)(const void *)answer.msg;
	ck_assert_str_eq(info->name, "n");
	ck_assert_str_eq(info->vendor_version, "v1");
	ck_assert_uint_eq(info->n_manifest, 1);
	ck_assert_str_eq(info->manifest[0]->value, "w");
	ck_assert_int_eq(DECODE(INFO, ""), 0);
}
END_TEST

START_TEST(unknown_fields_are_dropped_at_every_depth)
{
	const Csi__V1__GetPluginInfoResponse *info;

	ck_assert_int_eq(DECODE(INFO, "\x0a\x01n\x1a\x09\x0a\x01k\x12\x01w\x1a\x01x\x28\x01\x31"
				      "12345678"
				      "\x3d"
				      "1234"),
	    0);
	info = (const Csi__V1__GetPluginInfoResponse *)(const void *)answer.msg;
	ck_assert_uint_eq(info->base.n_unknown_fields, 0);
	ck_assert_uint_eq(info->manifest[0]->base.n_unknown_fields, 0);
	ck_assert_uint_eq(protobuf_c_message_get_packed_size(answer.msg), 3 + 8);
	/* also below the case of a oneof */
	ck_assert_int_eq(DECODE(CAPS, "\x0a\x08\x0a\x04\x08\x01\x10\x05\x10\x01"), 0);
	ck_assert_uint_eq(protobuf_c_message_get_packed_size(answer.msg), 6);
}
END_TEST

START_TEST(what_is_no_answer_is_refused)
{
	ck_assert_int_eq(DECODE(INFO, "\x0a\x03"
				      "a\0b"),
	    -EPROTO);
	ck_assert_int_eq(DECODE(INFO, "\x0a\x01\xe4"), -EPROTO);
	ck_assert_int_eq(DECODE(INFO, "\x1a\x03\x0a\x01\xe4"), -EPROTO); /* in a nested message */
	ck_assert_int_eq(DECODE(INFO, "\x0a\x01n\x0a\x01n"), -EPROTO); /* the field occurs twice */
	ck_assert_int_eq(DECODE(INFO, "\x08\x01"), -EPROTO); /* a number instead of a text */
	ck_assert_int_eq(DECODE(INFO, "\x18\x01"), -EPROTO); /* and instead of a message */
	ck_assert_int_eq(DECODE(INFO, "\x0a\x05"
				      "abc"),
	    -EPROTO); /* truncated */
	ck_assert_int_eq(DECODE(INFO, "\x0a"), -EPROTO);
	ck_assert_int_eq(DECODE(INFO, "\x0b"), -EPROTO);     /* a group */
	ck_assert_int_eq(DECODE(INFO, "\x02\x00"), -EPROTO); /* field 0 */
	ck_assert_int_eq(DECODE(INFO, "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -EPROTO);
	ck_assert_int_eq(DECODE(INFO, "\x28\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), -EPROTO);
	ck_assert_int_eq(
	    DECODE(CAPS, "\x0a\x04\x0a\x02\x0a\x00"), -EPROTO); /* bytes instead of a number */
}
END_TEST

/* As many empty entries as are small on the wire but large in memory, here and in the
 * supervisor. */
START_TEST(what_is_decoded_can_be_sent_on_and_decoded_there)
{
	size_t accepted = 0, max = CSI_REP_BYTES_MAX / 2;
	char *bytes = malloc(2 * max);

	for (size_t i = 0; i < max; i++)
		memcpy(bytes + 2 * i, "\x0a", 2);
	for (size_t n = 1; n <= max; n += 1 + n / 4) {
		CsiCallRep rep = CSI_CALL_REP__INIT;
		cleanup_close int fd = -1;
		ProtobufCMessage *taken;
		struct err e = { 0 };

		if (decode(CAPS, bytes, 2 * n) < 0)
			break;
		accepted = n;
		rep.answer_case = CSI_CALL_REP__ANSWER_CONTROLLER_GET_CAPABILITIES;
		rep.controller_get_capabilities = (void *)answer.msg;
		fd = ipc_protobuf_put(&rep.base, CSI_REP_BYTES_MAX, &e);
		ck_assert_msg(fd >= 0, "%s", e.msg);
		taken = ipc_protobuf_take(&csi_call_rep__descriptor, fd, CSI_REP_BYTES_MAX, &e);
		ck_assert_msg(taken != NULL, "%zu: %s", n, e.msg);
		protobuf_c_message_free_unpacked(taken, NULL);
	}
	ck_assert_uint_gt(accepted, 50000);
	ck_assert_uint_lt(accepted, max / 2);
	free(bytes);
}
END_TEST

/* As above, but each answer that is small enough goes in a packet. */
START_TEST(a_packet_takes_what_is_not_put_into_a_memfd)
{
	static struct ipc_packet packet;
	static uint8_t buf[IPC_PACKET_MAX];
	char *bytes = malloc(CSI_INLINE_BYTES_MAX);
	size_t n = 1;

	for (size_t i = 0; i < CSI_INLINE_BYTES_MAX / 2; i++)
		memcpy(bytes + 2 * i, "\x0a", 2);
	for (; decode(CAPS, bytes, 2 * n) == 0 && answer.used <= CSI_ANSWER_INLINE;
	     n += 1 + n / 64) {
		CsiCallRep rep = CSI_CALL_REP__INIT;
		struct err e = { 0 };
		ssize_t len;

		rep.answer_case = CSI_CALL_REP__ANSWER_CONTROLLER_GET_CAPABILITIES;
		rep.controller_get_capabilities = (void *)answer.msg;
		len =
		    ipc_encode(IPC_CSI_HELPER, IPC_SUPERVISOR, CSI_CALL_REP, 1, &rep.base, buf, &e);
		ck_assert_msg(len > 0, "%s", e.msg);
		ck_assert_msg(ipc_decode(IPC_SUPERVISOR, IPC_CSI_HELPER, buf, (size_t)len, 0,
				  &packet, &e) == 0,
		    "%zu: %s", n, e.msg);
	}
	ck_assert_uint_gt(n, 500);
	free(bytes);
}
END_TEST

START_TEST(a_memfd_is_checked_as_a_packet_is)
{
	static const struct {
		const char *bytes;
		size_t len;
	} bad[] = { { "\x08", 1 }, { "\x08\x00", 2 }, { "\x08\x01\x08\x01", 4 },
		{ "\xf8\x7f\x01", 3 },
		{ "\x12\x03"
		  "a\0b",
		    5 } };
	struct err e = { 0 };

	for (size_t i = 0; i < ELEMENTSOF(bad); i++) {
		cleanup_close int fd = fd_memfd_sealed("bad", bad[i].bytes, bad[i].len);

		ck_assert_ptr_null(ipc_protobuf_take(&csi_call_rep__descriptor, fd, 100, &e));
		ck_assert_int_eq(e.code, -EPROTO);
	}
	for (int sealed = 0; sealed < 2; sealed++) {
		cleanup_close int fd = sealed ? fd_memfd_sealed("large", "\x08\x01", 2)
					      : memfd_create("unsealed", MFD_CLOEXEC);

		ck_assert_ptr_null(ipc_protobuf_take(&csi_call_rep__descriptor, fd, 1, &e));
		ck_assert_int_eq(e.code, sealed ? -EFBIG : -EPERM);
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, an_answer_is_decoded);
	tcase_add_test(tc, unknown_fields_are_dropped_at_every_depth);
	tcase_add_test(tc, what_is_no_answer_is_refused);
	tcase_add_test(tc, what_is_decoded_can_be_sent_on_and_decoded_there);
	tcase_add_test(tc, a_packet_takes_what_is_not_put_into_a_memfd);
	tcase_add_test(tc, a_memfd_is_checked_as_a_packet_is);
}

int
main(void)
{
	ipc_use_codec(&ipc_protobuf);
	return unit_run("csi_answer", add);
}
