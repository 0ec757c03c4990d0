// SPDX-License-Identifier: Apache-2.0
/* test_csi_secrets.c: hides a request's secrets in what the plugin says. */
/* link: csi-helper */
#include <string.h>

#include "common/cleanup.h"
#include "csi-helper/csi_secrets.h"
#include "proto/csi.pb-c.h"
#include "tests/unit/unit.h"

static char shown[64];

/* Hides what a request with these values has, up to a NULL. */
static const char *
hide(const char *const *values, const char *text, size_t size)
{
	Csi__V1__NodeStageVolumeRequest req = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	Csi__V1__StringEntry entries[4], *list[4];
	struct csi_secrets s;

	for (; values[req.n_secrets]; req.n_secrets++) {
		csi__v1__string_entry__init(list[req.n_secrets] = &entries[req.n_secrets]);
		entries[req.n_secrets].value = (char *)(uintptr_t)values[req.n_secrets];
	}
	req.secrets = list;
	csi_secrets_take(&s, &req.base);
	shown[csi_secrets_hide(&s, text, strlen(text), shown, size)] = '\0';
	csi_secrets_done(&s);
	return shown;
}

START_TEST(each_value_is_hidden_wherever_it_is)
{
	const char *const values[] = { "hunter2", "top secret", NULL };

	ck_assert_str_eq(hide(values, "hunter2", 60), "[REDACTED]");
	ck_assert_str_eq(hide(values, "-phunter2,top secret.", 60), "-p[REDACTED],[REDACTED].");
	ck_assert_str_eq(hide(values, "hunter", 60), "hunter");
	ck_assert_str_eq(hide(values, "", 60), "");
}
END_TEST

START_TEST(the_longest_value_counts)
{
	const char *const values[] = { "pass", "password", "word", NULL };

	ck_assert_str_eq(hide(values, "a password", 60), "a [REDACTED]");
	ck_assert_str_eq(hide(values, "passpassword", 60), "[REDACTED][REDACTED]");
}
END_TEST

START_TEST(short_values_are_not_hidden)
{
	const char *const values[] = { "", "a", "abc", "abcd", NULL };

	ck_assert_str_eq(hide(values, "a abc abcd", 60), "a abc [REDACTED]");
}
END_TEST

START_TEST(a_value_is_never_cut)
{
	const char *const values[] = { "hunter2", NULL };

	for (size_t size = 0; size < 20; size++)
		ck_assert_ptr_null(strstr(hide(values, "as hunter2 on host", size), "hun"));
	ck_assert_str_eq(hide(values, "as hunter2 on host", 6), "as [RE");
}
END_TEST

START_TEST(each_line_of_a_value_is_hidden)
{
	const char *const values[] = { "first line\r\nsecond\n\nabc\n", NULL };

	ck_assert_str_eq(hide(values, "first line second abc", 60), "[REDACTED] [REDACTED] abc");
}
END_TEST

START_TEST(a_value_in_quotes_is_hidden)
{
	const char *const values[] = { "a\"b\\c", NULL };

	ck_assert_str_eq(hide(values, "a\"b\\c", 60), "[REDACTED]");
	ck_assert_str_eq(hide(values, "\"a\\\"b\\\\c\"", 60), "\"[REDACTED]\"");
}
END_TEST

START_TEST(credentials_in_mount_flags_are_hidden)
{
	static char flags[][32] = { "noatime", "vers=4.1", "PASSWORD=hunter2", "x=password" };
	Csi__V1__VolumeCapability__MountVolume mount =
	    CSI__V1__VOLUME_CAPABILITY__MOUNT_VOLUME__INIT;
	Csi__V1__VolumeCapability cap = CSI__V1__VOLUME_CAPABILITY__INIT, *caps[] = { &cap };
	Csi__V1__NodeStageVolumeRequest one = CSI__V1__NODE_STAGE_VOLUME_REQUEST__INIT;
	Csi__V1__CreateVolumeRequest many = CSI__V1__CREATE_VOLUME_REQUEST__INIT;
	const ProtobufCMessage *const requests[] = { &one.base, &many.base };
	char *list[] = { flags[0], flags[1], flags[2], flags[3] };
	const char text[] = "noatime,vers=4.1,PASSWORD=hunter2,x=password";
	struct csi_secrets s;

	mount.mount_flags = list;
	mount.n_mount_flags = ELEMENTSOF(list);
	cap.access_type_case = CSI__V1__VOLUME_CAPABILITY__ACCESS_TYPE_MOUNT;
	cap.mount = &mount;
	one.volume_capability = &cap;
	many.volume_capabilities = caps;
	many.n_volume_capabilities = 1;
	for (size_t i = 0; i < ELEMENTSOF(requests); i++) {
		csi_secrets_take(&s, requests[i]);
		shown[csi_secrets_hide(&s, text, strlen(text), shown, sizeof shown - 1)] = '\0';
		ck_assert_str_eq(shown, "noatime,vers=4.1,PASSWORD=[REDACTED],x=password");
		csi_secrets_done(&s);
	}
}
END_TEST

START_TEST(requests_without_secrets)
{
	Csi__V1__ProbeRequest probe = CSI__V1__PROBE_REQUEST__INIT;
	const char *const values[] = { NULL };
	struct csi_secrets s;

	csi_secrets_take(&s, &probe.base);
	ck_assert_uint_eq(s.len, 0);
	csi_secrets_done(&s);
	ck_assert_str_eq(hide(values, "text", 60), "text");
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, each_value_is_hidden_wherever_it_is);
	tcase_add_test(tc, the_longest_value_counts);
	tcase_add_test(tc, short_values_are_not_hidden);
	tcase_add_test(tc, a_value_is_never_cut);
	tcase_add_test(tc, each_line_of_a_value_is_hidden);
	tcase_add_test(tc, a_value_in_quotes_is_hidden);
	tcase_add_test(tc, credentials_in_mount_flags_are_hidden);
	tcase_add_test(tc, requests_without_secrets);
}

int
main(void)
{
	return unit_run("csi_secrets", add);
}
