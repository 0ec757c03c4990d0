/* SPDX-License-Identifier: Apache-2.0 */
/* config_bed.h: parses a configuration for the tests of config/, and keeps what it says. */
#ifndef DROVER_TESTS_UNIT_CONFIG_BED_H
#define DROVER_TESTS_UNIT_CONFIG_BED_H

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/cleanup.h"
#include "config/config.h"
#include "tests/unit/unit.h"

static struct agent_config config;
static struct agent_policy policy;
static char warnings[8192];
static char shown[2048];
static struct err e;
static struct config_sink sink;

/* The first line of the first error is in e, whole in shown. */
static inline void
note_problem(void *arg, bool is_error, const char *text)
{
	ck_assert_ptr_eq(arg, &config);
	if (is_error && !e.msg[0]) {
		(void)snprintf(shown, sizeof shown, "%s", text);
		(void)err_say(&e, -EINVAL, "%.*s", (int)strcspn(text, "\n"), text);
	}
	if (is_error)
		return;
	ck_assert_uint_lt(strlen(warnings) + strlen(text) + 2, sizeof warnings);
	(void)strcat(strcat(warnings, text), "\n");
}

static inline void
reset_sink(void)
{
	sink = (struct config_sink){ .problem = note_problem, .arg = &config };
	e = (struct err){ 0 };
}

/* Parses a block of exactly that size, so that ASan detects a read beyond it. */
static inline int
parse_more(const char *text, size_t len)
{
	cleanup_free char *copy = malloc(len ? len : 1);

	memcpy(copy, text, len);
	reset_sink();
	return config_parse(copy, len, "a.hcl", &config, &policy, &sink);
}

static inline int
parse(const char *text)
{
	config_defaults(&config, &policy, false);
	warnings[0] = '\0';
	return parse_more(text, strlen(text));
}

static inline void
parse_well(const char *text)
{
	ck_assert_msg(parse(text) == 0, "%s", e.msg);
	ck_assert_str_eq(warnings, "");
}

static inline int
check_config(void)
{
	reset_sink();
	return config_check(&config, &policy, &sink);
}

#endif
