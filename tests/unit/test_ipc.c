// SPDX-License-Identifier: Apache-2.0
/*
 * test_ipc.c: every message of ipc_msgs.def, filled by its descriptor or its table of fields:
 * encoded and decoded, and every way to be invalid: direction, length, descriptors; for protobuf
 * unknown and doubled fields, order, NULs; for records an invalid value in every field.
 */
#include <dirent.h>
#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/fd.h"
#include "common/ipc_protobuf.h"
#include "proto/heartbeat.pb-c.h"
#include "tests/unit/ipc_filled.h"
#include "tests/unit/unit.h"

#define HEAD    sizeof(struct ipc_head)
#define ONEOFS  16 /* more than any oneof has members */
#define UNKNOWN 12345

static struct ipc_packet packet;
static uint8_t buf[IPC_PACKET_MAX], changed[2 * IPC_PACKET_MAX];

/* --- peers: IPC_HELPER stands for each of them --- */

static bool
is_peer(unsigned in_table, unsigned peer)
{
	return in_table == peer ||
	       (in_table == IPC_HELPER && peer != IPC_SUPERVISOR && peer != IPC_HELPER);
}

static unsigned
first_peer(unsigned in_table)
{
	return in_table == IPC_HELPER ? IPC_EXEC_HELPER : in_table;
}

static int
decode(const struct ipc_msg_info *info, const uint8_t *data, size_t len)
{
	/* Decodes a block of exactly that size, so that ASan detects a read beyond it. */
	cleanup_free uint8_t *copy = malloc(len ? len : 1);
	struct err e = { 0 };
	int r;

	memcpy(copy, data, len);
	r = ipc_decode(
	    first_peer(info->to), first_peer(info->from), copy, len, info->n_fds, &packet, &e);
	ck_assert(r == 0 || (r == -EPROTO && e.msg[0]));
	return r;
}

static size_t
encode(const struct ipc_msg_info *info, unsigned type, const void *msg)
{
	struct err e = { 0 };
	ssize_t len =
	    ipc_encode(first_peer(info->from), first_peer(info->to), type, 77, msg, buf, &e);

	ck_assert_msg(len >= (ssize_t)HEAD, "%s: %s", info->name, e.msg);
	return (size_t)len;
}

/* Returns the end of the field at `at`, to truncate between two fields. */
static size_t
field_end(size_t at, size_t len)
{
	uint64_t key = 0, n = 0;
	unsigned shift;

	for (shift = 0; at < len; shift += 7) {
		key |= (uint64_t)(buf[at] & 0x7f) << shift;
		if (!(buf[at++] & 0x80))
			break;
	}
	for (shift = 0; at < len; shift += 7) {
		n |= (uint64_t)(buf[at] & 0x7f) << shift;
		if (!(buf[at++] & 0x80))
			break;
	}
	return (key & 7) == 2 ? at + n : at;
}

/* --- the tests, for the type _i --- */

#define FOR_MESSAGE(info)                                                                          \
	const struct ipc_msg_info *info = ipc_msg_info((unsigned)_i);                              \
                                                                                                   \
	if (!info)                                                                                 \
	return
#define FOR_PROTOBUF(info, desc)                                                                   \
	const struct ipc_msg_info *info = ipc_msg_info((unsigned)_i);                              \
	const ProtobufCMessageDescriptor *desc = ipc_protobuf_desc((unsigned)_i);                  \
                                                                                                   \
	if (!desc)                                                                                 \
	return

START_TEST(there_and_back)
{
	FOR_MESSAGE(info);
	for (unsigned k = 0; k < ONEOFS; k++) {
		size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, k)), again;

		ck_assert_int_eq(decode(info, buf, len), 0);
		ck_assert_uint_eq(packet.type, (unsigned)_i);
		ck_assert_uint_eq(packet.serial, 77);
		memcpy(changed, buf, len);
		again = encode(info, (unsigned)_i, packet.msg);
		ck_assert_uint_eq(again, len);
		ck_assert_mem_eq(buf, changed, len);
	}
}
END_TEST

START_TEST(empty_there_and_back)
{
	FOR_PROTOBUF(info, desc);
	ProtobufCMessage *msg = take(desc->sizeof_message);

	desc->message_init(msg);
	ck_assert_uint_eq(encode(info, (unsigned)_i, msg), HEAD);
	ck_assert_int_eq(decode(info, buf, HEAD), 0);
}
END_TEST

START_TEST(no_other_direction)
{
	FOR_MESSAGE(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 0));
	struct err e;

	for (unsigned from = 0; from < IPC_HELPER; from++)
		for (unsigned to = 0; to < IPC_HELPER; to++) {
			bool may = is_peer(info->from, from) && is_peer(info->to, to);
			int r = ipc_decode(to, from, buf, len, info->n_fds, &packet, &e);
			ssize_t n = ipc_encode(from, to, (unsigned)_i, 1, packet.msg, changed, &e);

			ck_assert_msg(r == (may ? 0 : -EPROTO), "%s from %u to %u: %d", info->name,
			    from, to, r);
			ck_assert_msg(may ? n > 0 : n == -EPERM, "%s from %u to %u: %zd",
			    info->name, from, to, n);
		}
}
END_TEST

START_TEST(cut_at_each_length)
{
	FOR_PROTOBUF(info, desc);
	size_t len = encode(info, (unsigned)_i, fill_anew(desc, 1)), boundary = HEAD;

	for (size_t cut = 0; cut < len; cut++) {
		int r = decode(info, buf, cut);

		if (cut < HEAD) {
			ck_assert_int_eq(r, -EPROTO);
			continue;
		}
		/* Truncated between two fields it is a smaller message; anywhere else it is
		 * invalid. */
		while (boundary < cut)
			boundary = field_end(boundary, len);
		ck_assert_msg(
		    (r == 0) == (boundary == cut), "%s cut at %zu: %d", info->name, cut, r);
	}
}
END_TEST

START_TEST(nothing_unknown_at_any_depth)
{
	FOR_PROTOBUF(info, desc);
	for (unsigned k = 0; k < ONEOFS; k++) {
		ProtobufCMessageUnknownField unknown = { .tag = UNKNOWN,
			.wire_type = PROTOBUF_C_WIRE_TYPE_VARINT,
			.len = 1,
			.data = (uint8_t[]){ 1 } };
		ProtobufCMessage *msg = fill_anew(desc, k);

		for (size_t i = 0; i < n_filled; i++) {
			size_t len;

			filled[i]->n_unknown_fields = 1;
			filled[i]->unknown_fields = &unknown;
			len = encode(info, (unsigned)_i, msg);
			ck_assert_msg(decode(info, buf, len) == -EPROTO,
			    "%s: an unknown field in %s", info->name, filled[i]->descriptor->name);
			filled[i]->n_unknown_fields = 0;
		}
	}
}
END_TEST

START_TEST(no_field_twice)
{
	FOR_PROTOBUF(info, desc);
	size_t len = encode(info, (unsigned)_i, fill_anew(desc, 0)), end;
	unsigned n = 0;

	for (size_t at = HEAD; at < len; at = end) {
		const ProtobufCFieldDescriptor *f = &desc->fields[n];

		end = field_end(at, len);
		while (f->label != PROTOBUF_C_LABEL_REPEATED &&
		       (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF) && !is_chosen(desc, f, 0))
			f = &desc->fields[++n];
		if (f->label == PROTOBUF_C_LABEL_REPEATED)
			continue; /* one more element of a list is valid */
		n++;
		memcpy(changed, buf, end);
		memcpy(changed + end, buf + at, end - at);
		memcpy(changed + end + (end - at), buf + end, len - end);
		ck_assert_msg(decode(info, changed, len + (end - at)) == -EPROTO, "%s: %s twice",
		    info->name, f->name);
	}
}
END_TEST

START_TEST(no_other_order)
{
	FOR_PROTOBUF(info, desc);
	size_t len = encode(info, (unsigned)_i, fill_anew(desc, 0)), first, second;

	first = field_end(HEAD, len);
	if (len == HEAD || first == len)
		return;
	second = field_end(first, len);
	memcpy(changed, buf, HEAD);
	memcpy(changed + HEAD, buf + first, second - first);
	memcpy(changed + HEAD + (second - first), buf + HEAD, first - HEAD);
	memcpy(changed + second, buf + second, len - second);
	if (memcmp(changed, buf, len) == 0)
		return; /* two equal entries of one repeated field */
	ck_assert_int_eq(decode(info, changed, len), -EPROTO);
}
END_TEST

START_TEST(no_default_spelled_out)
{
	FOR_PROTOBUF(info, desc);
	for (unsigned i = 0; i < desc->n_fields; i++) {
		const ProtobufCFieldDescriptor *f = &desc->fields[i];
		struct ipc_head head = { .type = (uint16_t)_i };
		uint32_t wire =
		    f->type == PROTOBUF_C_TYPE_STRING || f->type == PROTOBUF_C_TYPE_BYTES ? 2 : 0;
		uint32_t key = f->id << 3 | wire;
		size_t len = HEAD;

		if (f->label == PROTOBUF_C_LABEL_REPEATED || f->type == PROTOBUF_C_TYPE_MESSAGE ||
		    (f->flags & PROTOBUF_C_FIELD_FLAG_ONEOF))
			continue;
		memcpy(changed, &head, HEAD);
		for (; key > 0x7f; key >>= 7)
			changed[len++] = (uint8_t)(key | 0x80);
		changed[len++] = (uint8_t)key;
		changed[len++] = 0;
		ck_assert_msg(decode(info, changed, len) == -EPROTO, "%s: %s spelled out",
		    info->name, f->name);
	}
}
END_TEST

START_TEST(no_nul_in_a_text)
{
	FOR_PROTOBUF(info, desc);
	for (unsigned k = 0; k < ONEOFS; k++) {
		size_t len = encode(info, (unsigned)_i, fill_anew(desc, k));

		for (size_t at = HEAD + 1; at + 1 < len; at++) {
			if (memcmp(buf + at - 1, TEXT, 3) != 0)
				continue;
			buf[at] = '\0';
			ck_assert_msg(
			    decode(info, buf, len) == -EPROTO, "%s: NUL at %zu", info->name, at);
			buf[at] = '@';
		}
	}
}
END_TEST

START_TEST(no_other_number_of_descriptors)
{
	FOR_MESSAGE(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 0));
	struct err e;

	for (unsigned n = 0; n < 4; n++) {
		int r = ipc_decode(
		    first_peer(info->to), first_peer(info->from), buf, len, n, &packet, &e);

		ck_assert_int_eq(r, n == info->n_fds ? 0 : -EPROTO);
	}
}
END_TEST

START_TEST(nothing_beyond_its_size)
{
	FOR_MESSAGE(info);
	size_t len = HEAD + info->max_bytes + 1;
	struct ipc_head head = { .type = (uint16_t)_i };

	ck_assert_uint_le(HEAD + info->max_bytes, IPC_PACKET_MAX);
	memset(changed, 0, len);
	memcpy(changed, &head, HEAD);
	ck_assert_int_eq(decode(info, changed, len), -EPROTO);
}
END_TEST

START_TEST(the_head_has_a_zero)
{
	FOR_MESSAGE(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 0));

	for (unsigned bit = 16; bit < 32; bit++) {
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		ck_assert_int_eq(decode(info, buf, len), -EPROTO);
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

/* Whatever a taken-over peer sends is either decoded as canonical or rejected. */
START_TEST(each_bit_turned)
{
	FOR_MESSAGE(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 2));
	struct err e;

	for (size_t bit = 0; bit < len * 8; bit++) {
		int r;

		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
		r = ipc_decode(first_peer(info->to), first_peer(info->from), buf, len, info->n_fds,
		    &packet, &e);
		ck_assert(r == 0 || r == -EPROTO);
		if (r == 0) {
			ssize_t n = ipc_encode(first_peer(info->from), first_peer(info->to),
			    packet.type, packet.serial, packet.msg, changed, &e);

			ck_assert_int_eq(n, len);
			ck_assert_mem_eq(changed, buf, len);
		}
		buf[bit / 8] ^= (uint8_t)(1 << bit % 8);
	}
}
END_TEST

/* --- records --- */

#define FOR_RECORD(info)                                                                           \
	const struct ipc_msg_info *info = ipc_msg_info((unsigned)_i);                              \
                                                                                                   \
	if (!info || !info->record)                                                                \
	return

START_TEST(a_record_of_zeros)
{
	FOR_RECORD(info);
	uint8_t *zeros = take(info->record->size);
	size_t len = encode(info, (unsigned)_i, zeros);

	ck_assert_int_eq(decode(info, buf, len), 0);
	ck_assert_uint_le(len, HEAD + info->record->size);
}
END_TEST

START_TEST(a_record_has_one_size)
{
	FOR_RECORD(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 0));

	for (size_t cut = 0; cut < len; cut++)
		ck_assert_int_eq(decode(info, buf, cut), -EPROTO);
	for (size_t more = 1; more < 9; more++)
		ck_assert_int_eq(decode(info, buf, len + more), -EPROTO);
}
END_TEST

/* Checks one decoding and one encoding with the size bytes of `wrong` at `at`. */
static void
check_refused(unsigned type, size_t at, const void *wrong, size_t size, size_t len)
{
	const struct ipc_msg_info *info = ipc_msg_info(type);
	struct err e;

	memcpy(changed, buf, len);
	memcpy(changed + at, wrong, size);
	ck_assert_msg(decode(info, changed, len) == -EPROTO, "%s with %s at %zu", info->name,
	    (const char *)wrong, at);
	memset(changed + len, 0, HEAD + info->record->size - len);
	ck_assert_int_eq(ipc_encode(first_peer(info->from), first_peer(info->to), type, 1,
			     changed + HEAD, changed + IPC_PACKET_MAX, &e),
	    -EMSGSIZE);
}

static size_t
break_fields(unsigned type, const struct ipc_record *record, size_t at, size_t len)
{
	static char letters[8192];

	memset(letters, 'x', sizeof letters - 1);
	for (uint32_t i = 0; i < record->n_fields; i++) {
		const struct ipc_field *f = &record->fields[i];
		const uint32_t above[] = { f->max + 1, 1u << 31, UINT32_MAX };
		uint32_t n = f->kind == IPC_FIELD_LIST ? 2 : 1;

		ck_assert_uint_lt(f->size, sizeof letters);
		for (unsigned k = 0; k < ELEMENTSOF(above); k++) {
			if (f->kind == IPC_FIELD_BOOL)
				check_refused(type, at, (uint8_t[]){ 2, 128, 255 } + k, 1, len);
			else if (f->kind == IPC_FIELD_ENUM || f->kind == IPC_FIELD_LIST)
				check_refused(type, at, &above[k], sizeof above[k], len);
		}
		if (f->kind == IPC_FIELD_TEXT) {
			check_refused(type, at, letters, f->size, len);
			check_refused(type, at + sizeof TEXT, "x", 1, len);
		}
		if (f->kind == IPC_FIELD_TEXT || f->kind == IPC_FIELD_ZERO)
			check_refused(type, at + f->size - 1, "x", 1, len);
		at += f->size;
		for (uint32_t k = 0; f->record && k < n; k++)
			at = break_fields(type, f->record, at, len);
	}
	return at;
}

START_TEST(no_field_holds_what_it_must_not)
{
	FOR_RECORD(info);
	size_t len = encode(info, (unsigned)_i, fill_message((unsigned)_i, 0));

	ck_assert_uint_eq(break_fields((unsigned)_i, info->record, HEAD, len), len);
}
END_TEST

/* A message with more or fewer elements than the count of its list says is refused. */
START_TEST(a_list_is_as_long_as_it_says)
{
	struct exec_task_start_req req = { .n_mounts = 3 };
	const struct ipc_msg_info *info = ipc_msg_info(EXEC_TASK_START_REQ);
	size_t len = encode(info, EXEC_TASK_START_REQ, &req);

	ck_assert_uint_eq(
	    len, HEAD + offsetof(struct exec_task_start_req, mounts) + 3 * sizeof req.mounts[0]);
	ck_assert_int_eq(decode(info, buf, len), 0);
	ck_assert_int_eq(decode(info, buf, len - sizeof req.mounts[0]), -EPROTO);
	ck_assert_int_eq(decode(info, buf, len + sizeof req.mounts[0]), -EPROTO);
}
END_TEST

START_TEST(a_text_that_is_too_long_is_not_sent)
{
	struct exec_task_start_req req = { 0 };
	char text[sizeof req.start.user + 1];
	struct err e;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	ck_assert(!IPC_TEXT_SET(req.start.user, text));
	ck_assert_int_eq(
	    ipc_encode(IPC_SUPERVISOR, IPC_EXEC_HELPER, EXEC_TASK_START_REQ, 1, &req, buf, &e),
	    -EMSGSIZE);
	ck_assert(IPC_TEXT_SET(req.start.user, text + 2));
	ck_assert_str_eq(req.start.user, text + 2);
	ck_assert(IPC_TEXT_SET(req.start.user, "b"));
	(void)encode(ipc_msg_info(EXEC_TASK_START_REQ), EXEC_TASK_START_REQ, &req);
}
END_TEST

/* --- single cases --- */

START_TEST(numbers_that_are_no_message)
{
	struct ipc_hello_req hello = { 0 };
	struct err e;

	for (unsigned type = 0; type < 65536; type++) {
		struct ipc_head head = { .type = (uint16_t)type };

		if (ipc_msg_info(type))
			continue;
		memcpy(buf, &head, HEAD);
		for (unsigned from = 0; from < IPC_PEERS; from++)
			ck_assert_int_eq(
			    ipc_decode(IPC_SUPERVISOR, from, buf, HEAD, 0, &packet, &e), -EPROTO);
		ck_assert_int_eq(
		    ipc_encode(IPC_SUPERVISOR, IPC_EXEC_HELPER, type, 1, &hello, buf, &e), -EPERM);
	}
}
END_TEST

START_TEST(a_message_of_another_type_is_not_sent)
{
	HbBeatReq req = HB_BEAT_REQ__INIT;
	struct err e;

	ck_assert_int_eq(
	    ipc_encode(IPC_SUPERVISOR, IPC_HEARTBEAT, HB_CALL_CANCEL_EV, 1, &req.base, buf, &e),
	    -EINVAL);
}
END_TEST

START_TEST(a_message_that_is_too_large_is_not_sent)
{
	HbStreamAskEv ev = HB_STREAM_ASK_EV__INIT;
	char text[1024];
	struct err e;

	memset(text, 'a', sizeof text - 1);
	text[sizeof text - 1] = '\0';
	ev.method = text;
	ck_assert_int_eq(
	    ipc_encode(IPC_SUPERVISOR, IPC_HEARTBEAT, HB_STREAM_ASK_EV, 1, &ev.base, buf, &e),
	    -EMSGSIZE);
}
END_TEST

/* Two bytes each on the wire, fifty in memory: the arena limits them. */
START_TEST(the_arena_is_the_limit)
{
	/* node_publish_volume with 60,000 bytes of entries of its publish_context */
	static const uint8_t begin[] = { 0x92, 0x01, 0xe0, 0xd4, 0x03 }, entry[] = { 0x12, 0x00 };
	struct ipc_head head = { .type = CSI_CALL_REQ };
	struct err e;
	size_t len = HEAD + sizeof begin;

	memcpy(buf, &head, HEAD);
	memcpy(buf + HEAD, begin, sizeof begin);
	for (; len < HEAD + sizeof begin + 60000; len += sizeof entry)
		memcpy(buf + len, entry, sizeof entry);
	ck_assert_int_eq(
	    ipc_decode(IPC_CSI_HELPER, IPC_SUPERVISOR, buf, len, 0, &packet, &e), -EPROTO);
	ck_assert_uint_le(packet.arena_used, IPC_ARENA_SIZE);
	ck_assert_uint_gt(packet.arena_used, IPC_ARENA_SIZE - 4096);
}
END_TEST

static int
count_fds(void)
{
	cleanup_dir DIR *d = opendir("/proc/self/fd");
	int n = 0;

	ck_assert_ptr_nonnull(d);
	while (readdir(d))
		n++;
	return n;
}

static void
make_pair(int pair[2])
{
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
}

START_TEST(over_a_socket)
{
	int pair[2], before = count_fds(), fd;
	struct exec_task_start_req req = { 0 };
	struct err e = { 0 };

	make_pair(pair);
	(void)IPC_TEXT_SET(req.start.task, "web");
	fd = fd_memfd_sealed("x", "abc", 3);
	ck_assert_int_eq(
	    ipc_recv(pair[1], IPC_EXEC_HELPER, IPC_SUPERVISOR, &packet, MSG_DONTWAIT, &e), -EAGAIN);
	ck_assert_int_eq(ipc_send(pair[0], IPC_SUPERVISOR, IPC_EXEC_HELPER, EXEC_TASK_START_REQ, 9,
			     &req, NULL, 0, 0, &e),
	    -EINVAL);
	ck_assert_int_eq(ipc_send(pair[0], IPC_SUPERVISOR, IPC_EXEC_HELPER, EXEC_TASK_START_REQ, 9,
			     &req, &fd, 1, 0, &e),
	    0);
	ck_assert_int_eq(ipc_recv(pair[1], IPC_EXEC_HELPER, IPC_SUPERVISOR, &packet, 0, &e), 1);
	ck_assert_uint_eq(packet.serial, 9);
	ck_assert_str_eq(((const struct exec_task_start_req *)packet.msg)->start.task, "web");
	ck_assert_uint_eq(packet.n_fds, 1);
	ipc_packet_done(&packet);
	(void)close(fd);
	(void)close(pair[0]);
	ck_assert_int_eq(ipc_recv(pair[1], IPC_EXEC_HELPER, IPC_SUPERVISOR, &packet, 0, &e), 0);
	(void)close(pair[1]);
	ck_assert_int_eq(count_fds(), before);
}
END_TEST

/* Rejected packets leave no descriptor open, however many they have. */
START_TEST(refused_descriptors_are_closed)
{
	struct ipc_head head = { .type = EXEC_RUN_REAP_REQ };
	int pair[2], fds[8], before = count_fds();
	struct err e = { 0 };

	make_pair(pair);
	for (size_t i = 0; i < ELEMENTSOF(fds); i++)
		fds[i] = STDERR_FILENO;
	for (unsigned n = 1; n <= ELEMENTSOF(fds); n++) {
		ck_assert_int_eq(fd_send_msg(pair[0], &head, sizeof head, fds, n, 0), 0);
		ck_assert_int_lt(
		    ipc_recv(pair[1], IPC_EXEC_HELPER, IPC_SUPERVISOR, &packet, 0, &e), 0);
		ck_assert_int_eq(count_fds(), before + 2);
	}
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

START_TEST(a_packet_larger_than_any_is_refused)
{
	int pair[2], size = 1 << 20;
	struct err e = { 0 };

	make_pair(pair);
	(void)setsockopt(pair[0], SOL_SOCKET, SO_SNDBUFFORCE, &size, sizeof size);
	memset(changed, 0, sizeof changed);
	ck_assert_int_eq(fd_send_msg(pair[0], changed, IPC_PACKET_MAX + 1, NULL, 0, 0), 0);
	ck_assert_int_lt(ipc_recv(pair[1], IPC_EXEC_HELPER, IPC_SUPERVISOR, &packet, 0, &e), 0);
	(void)close(pair[0]);
	(void)close(pair[1]);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, there_and_back, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, empty_there_and_back, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_other_direction, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, cut_at_each_length, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, nothing_unknown_at_any_depth, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_field_twice, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_other_order, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_default_spelled_out, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_nul_in_a_text, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_other_number_of_descriptors, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, nothing_beyond_its_size, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, the_head_has_a_zero, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, each_bit_turned, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, a_record_of_zeros, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, a_record_has_one_size, 0, IPC_TYPE_MAX);
	tcase_add_loop_test(tc, no_field_holds_what_it_must_not, 0, IPC_TYPE_MAX);
	tcase_add_test(tc, a_list_is_as_long_as_it_says);
	tcase_add_test(tc, a_text_that_is_too_long_is_not_sent);
	tcase_add_test(tc, numbers_that_are_no_message);
	tcase_add_test(tc, a_message_of_another_type_is_not_sent);
	tcase_add_test(tc, a_message_that_is_too_large_is_not_sent);
	tcase_add_test(tc, the_arena_is_the_limit);
	tcase_add_test(tc, over_a_socket);
	tcase_add_test(tc, refused_descriptors_are_closed);
	tcase_add_test(tc, a_packet_larger_than_any_is_refused);
}

int
main(void)
{
	ipc_use_codec(&ipc_protobuf);
	return unit_run("ipc", add);
}
