// SPDX-License-Identifier: Apache-2.0
/* test_csi_codes.c: docs/csi.md says what csi_codes.def says, and the errors of calls follow it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "supervisor/volume/csi_error.h"
#include "tests/unit/unit.h"

static char *doc;

static void
read_doc(void)
{
	FILE *f = fopen(FIXTURES "/../../../docs/csi.md", "re");
	size_t size = 0;

	ck_assert_ptr_nonnull(f);
	ck_assert_int_ge(getdelim(&doc, &size, '\0', f), 0);
	(void)fclose(f);
}

static const char *
verdict_name(enum csi_verdict verdict)
{
	static const char *const names[] = { [CSI_DONE] = "done",
		[CSI_FINAL] = "final",
		[CSI_RETRY] = "retried",
		[CSI_PENDING] = "waits" };

	return names[verdict];
}

static void
check_row(const char *call, CsiCallReq__CallCase which, uint32_t status)
{
	struct csi_outcome o = csi_outcome(which, status);
	char row[512];

	(void)snprintf(row, sizeof row, "\n| %s%s%u %s | %s | %s | %s |\n", call,
	    *call ? " | " : "", status, o.name, verdict_name(o.verdict),
	    o.unknown ? "unknown" : "none", o.meaning);
	if (!strstr(doc, row))
		ck_abort_msg("docs/csi.md lacks the row: %s", row);
}

static void
check_origin(const char *name, CsiCallRep__Origin origin)
{
	CsiCallRep rep = CSI_CALL_REP__INIT;
	struct csi_outcome o;
	char row[512];

	rep.grpc_status = GRPC_INTERNAL;
	rep.origin = origin;
	o = csi_outcome_of(CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME, &rep);
	ck_assert(o.unknown);
	(void)snprintf(row, sizeof row, "\n| %s | %s | unknown | %s |\n", name,
	    verdict_name(o.verdict), o.meaning);
	if (!strstr(doc, row))
		ck_abort_msg("docs/csi.md lacks the row: %s", row);
}

START_TEST(the_document_has_every_row)
{
	static const char *const effects[] = { " | none | ", " | unknown | " };
	unsigned rows = 0, n = 0;

#define CSI_CODE(status, name, errno_, verdict, effect, meaning)                                   \
	check_row("", CSI_CALL_REQ__CALL__NOT_SET, status);                                        \
	n++;
#include "supervisor/volume/csi_codes.def"
#define CSI_CALL(call, name, half, once) [CSI_CALL_REQ__CALL_##call] = name,
	static const char *const names[] = {
#include "supervisor/volume/csi_codes.def"
	};
#define CSI_RULE(call, status, verdict, effect, meaning)                                           \
	check_row(names[CSI_CALL_REQ__CALL_##call], CSI_CALL_REQ__CALL_##call, status);            \
	n++;
#include "supervisor/volume/csi_codes.def"
#define CSI_ORIGIN(origin, name, errno_, verdict, meaning)                                         \
	check_origin(name, CSI_CALL_REP__ORIGIN__##origin);                                        \
	n++;
#include "supervisor/volume/csi_codes.def"
	for (size_t i = 0; i < ELEMENTSOF(effects); i++)
		for (const char *at = doc; (at = strstr(at, effects[i])); at++)
			rows++;
	ck_assert_uint_eq(rows, n);
}
END_TEST

/* Every status of every call has a sentence with the call, the plugin, the code and its words. */
START_TEST(every_error_names_call_plugin_and_code)
{
	char words[] = "the words";

	for (uint32_t status = 0; status < 20; status++)
		for (CsiCallReq__CallCase call = CSI_CALL_REQ__CALL_PROBE;
		     call <= CSI_CALL_REQ__CALL_GET_VOLUME_GROUP_SNAPSHOT; call++) {
			struct csi_outcome o = csi_outcome(call, status);
			CsiCallRep rep = CSI_CALL_REP__INIT;
			struct err e = { 0 };

			rep.grpc_status = status;
			rep.grpc_message = words;
			ck_assert_int_eq(csi_error(call, "p", &rep, 3, &e), o.code);
			ck_assert_int_eq(o.code == 0, o.verdict == CSI_DONE);
			if (o.code == 0)
				continue;
			ck_assert_ptr_nonnull(strstr(e.msg, csi_call_name(call)));
			ck_assert_ptr_nonnull(strstr(e.msg, " of plugin p (tried 3 times): "));
			ck_assert_ptr_nonnull(strstr(e.msg, "rpc error: code = "));
			ck_assert_ptr_nonnull(strstr(e.msg, o.name));
			ck_assert_ptr_nonnull(strstr(e.msg, "desc = the words"));
		}
}
END_TEST

/* A volume, attachment or snapshot that the plugin does not know is gone. */
START_TEST(what_is_not_found_is_undone)
{
	static const CsiCallReq__CallCase calls[] = { CSI_CALL_REQ__CALL_NODE_UNPUBLISH_VOLUME,
		CSI_CALL_REQ__CALL_NODE_UNSTAGE_VOLUME,
		CSI_CALL_REQ__CALL_CONTROLLER_UNPUBLISH_VOLUME, CSI_CALL_REQ__CALL_DELETE_VOLUME,
		CSI_CALL_REQ__CALL_DELETE_SNAPSHOT };

	for (size_t i = 0; i < ELEMENTSOF(calls); i++)
		ck_assert_int_eq(csi_outcome(calls[i], 5).code, 0);
	ck_assert_int_eq(csi_outcome(CSI_CALL_REQ__CALL_NODE_PUBLISH_VOLUME, 5).code, -ENOENT);
	ck_assert_int_eq(csi_outcome(CSI_CALL_REQ__CALL_LIST_VOLUMES, 10).verdict, CSI_FINAL);
	ck_assert_int_eq(
	    csi_outcome(CSI_CALL_REQ__CALL_NODE_STAGE_VOLUME, 10).verdict, CSI_PENDING);
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_unchecked_fixture(tc, read_doc, NULL);
	tcase_add_test(tc, the_document_has_every_row);
	tcase_add_test(tc, every_error_names_call_plugin_and_code);
	tcase_add_test(tc, what_is_not_found_is_undone);
}

int
main(void)
{
	return unit_run("csi_codes", add);
}
