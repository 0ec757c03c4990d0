/* SPDX-License-Identifier: Apache-2.0 */
/*
 * template.h: renders the templates of jobs: Go's text/template with the functions that Nomad's
 * client permits (github.com/hashicorp/consul-template). Runs in: template-renderer, cli.
 *
 * A template is parsed once and rendered as often as its data changes. What it asks for, variables
 * and services, comes from callbacks, which answer at once; what they do not know yet is listed,
 * and the caller renders again when it has come. Nothing is global, and a template can do nothing
 * but call these callbacks. Limits hold for all that it computes.
 */
#ifndef DROVER_TEMPLATE_TEMPLATE_H
#define DROVER_TEMPLATE_TEMPLATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/template_need.h"

struct template;

struct template_limits {
	size_t memory_bytes; /* for parsing and for each rendering */
	size_t output_bytes;
	uint64_t steps;
	unsigned depth; /* of blocks, templates and values in each other */
};

/* 96 MiB of memory, 16 MiB of output, 20 million steps, a depth of 500. */
extern const struct template_limits template_default_limits;

struct template_options {
	const char *left, *right; /* delimiters; NULL or "": {{ and }} */
	bool missing_key_fails;   /* error_on_missing_key */
	const char *denied;       /* names of functions that fail, for glob_list_fits(); or NULL */
	const struct template_limits *limits; /* NULL: the default */
};

/*
 * Parses the text, which stays the caller's and outlives the template. Returns NULL if it is wrong;
 * then *ret_problem is a sentence that the caller frees.
 */
struct template *template_parse(
    const char *text, size_t len, const struct template_options *options, char **ret_problem);
void template_free(struct template *t);

/* Strings end with NUL. They are read before the callback's next call. */
struct template_variable {
	const char *ns, *path; /* namespace */
	uint64_t create_index, modify_index;
	int64_t create_time, modify_time; /* nanoseconds */
	size_t n_items;
	const char *const *keys, *const *values; /* sorted by key; none for a list of variables */
};

struct template_service {
	const char *id, *name, *node, *address, *datacenter, *job_id, *alloc_id;
	int port;
	size_t n_tags;
	const char *const *tags; /* sorted */
};

enum template_answer {
	TEMPLATE_THERE,
	TEMPLATE_ABSENT,  /* it is known that there is none */
	TEMPLATE_UNKNOWN, /* no answer has come yet */
};

/* What a template asks for. */
struct template_query {
	enum template_need_kind kind;
	const char *name; /* path or prefix, service, file */
	const char *ns;   /* of variables; "": the caller's default. "*" in lists: all */
	const char *region, *tag;
	const char *need; /* its name, as in struct template_need */
	int64_t count;    /* services: choose so many of them by key, if key is not NULL */
	const char *key;
};

/*
 * All callbacks are optional. One that is NULL knows nothing (TEMPLATE_UNKNOWN). What they return
 * stays valid until the next call.
 */
/* One address of a network interface of the machine. */
struct template_interface {
	const char *name, *address; /* eth0, 10.0.0.5/24 */
	const char *hardware;       /* 02:00:00:00:00:01, or "" */
	const char *flags;          /* as Go's package net shows them: up|broadcast|running; or 0 */
	int index, mtu;
	bool is_default; /* the default route goes through it */
};

struct template_data {
	void *arg;
	const char *ns; /* the task's namespace */
	/* The task's environment; NULL: there is no such variable. */
	const char *(*env)(void *arg, const char *name);
	enum template_answer (*variable)(
	    void *arg, const struct template_query *q, const struct template_variable **ret);
	/* Variables without their items, or services without more than names and tags for
	 * nomadServices: an array of *ret_n. */
	enum template_answer (*variables)(void *arg, const struct template_query *q,
	    const struct template_variable **ret, size_t *ret_n);
	enum template_answer (*services)(void *arg, const struct template_query *q,
	    const struct template_service **ret, size_t *ret_n);
	/* A file inside the task's directory. Absent: *ret_problem says why it is refused. */
	enum template_answer (*file)(void *arg, const struct template_query *q, const char **ret,
	    size_t *ret_len, const char **ret_problem);
	int64_t now_ns; /* the time that timestamp() shows, since 1970 */
	const struct template_interface *interfaces; /* by index */
	size_t n_interfaces;
	/* JSON of the value that the template begins with, "."; NULL: nothing. Numbers without a
	 * fraction are int64, if they fit. */
	const char *dot;
};

/* name: as events show it, such as nomad.var.block(nomad/jobs/web@default.global). */
struct template_need {
	struct template_query query;
	const char *name;
	bool missing; /* it has to come before the template is rendered */
};

struct template_result {
	const char *output;
	size_t len;
	const struct template_need *needs; /* in the order of their first use, each once */
	size_t n_needs, n_missing;
	const char *problem; /* the sentence about why nothing was rendered; NULL: rendered */
};

/*
 * Renders. The result belongs to the template until its next rendering. While something is missing,
 * the output is not complete, and is not to be used.
 */
const struct template_result *template_render(struct template *t, const struct template_data *data);

#endif
