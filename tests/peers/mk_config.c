// SPDX-License-Identifier: Apache-2.0
/*
 * mk_config.c: converts a configuration to its records, for tests that start one process alone.
 * Runs in: tests.
 *
 * mk_config config|policy [-dev] < FILE.hcl prints the record's bytes; mk_config build prints this
 * build's id.
 */
#include <stdio.h>
#include <string.h>

#include "common/proc.h"
#include "config/config.h"
#include "hcl/hcl_tree.h"

static void
print_problem(void *arg, bool is_error, const char *sentence)
{
	(void)arg;
	(void)is_error;
	fprintf(stderr, "%s\n", sentence);
}

static int
print_build(void)
{
	char *argv[] = { "x", "--instance=01234567", "--data-dir=/", "--runtime-dir=/",
		"--cgroup=/", NULL };
	struct proc_args args;
	struct err e = { 0 };

	if (proc_args_parse((int)(sizeof argv / sizeof argv[0]) - 1, argv, &args, &e) < 0) {
		fprintf(stderr, "%s\n", e.msg);
		return 1;
	}
	return puts(args.build) < 0;
}

int
main(int argc, char **argv)
{
	static char text[HCL_TREE_BYTES_MAX + 1];
	static struct agent_config config;
	static struct agent_policy policy;
	struct config_sink sink = { .problem = print_problem };
	size_t len, size;
	const void *record;

	if (argc == 2 && strcmp(argv[1], "build") == 0)
		return print_build();
	if (argc < 2 || (strcmp(argv[1], "config") != 0 && strcmp(argv[1], "policy") != 0))
		return 2;
	len = fread(text, 1, sizeof text, stdin);
	config_defaults(&config, &policy, argc > 2 && strcmp(argv[2], "-dev") == 0);
	if (config_parse(text, len, "stdin", &config, &policy, &sink) < 0 ||
	    config_check(&config, &policy, &sink) < 0)
		return 1;
	record = argv[1][0] == 'c' ? (const void *)&config : (const void *)&policy;
	size = argv[1][0] == 'c' ? sizeof config : sizeof policy;
	return fwrite(record, size, 1, stdout) != 1;
}
