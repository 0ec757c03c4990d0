// SPDX-License-Identifier: Apache-2.0
/* check_spec.c: what a check requests, and where. Runs in: supervisor. */
#include "supervisor/service/check_spec.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "common/cleanup.h"
#include "common/mem.h"
#include "supervisor/service/service_place.h"

static int
add_header(
    struct check_spec *spec, const char *name, const char *value, struct text *lines, struct err *e)
{
	if (!http_is_token(name) || !http_is_line(value))
		return err_say(
		    e, -EINVAL, "header \"%.60s\" has characters that are not allowed", name);
	/* The probe sets these headers itself. */
	if (strcasecmp(name, "Content-Length") == 0 || strcasecmp(name, "Transfer-Encoding") == 0 ||
	    strcasecmp(name, "Connection") == 0)
		return 0;
	if (strcasecmp(name, "Host") == 0) {
		str_set(&spec->host, value);
		return 0;
	}
	spec->has_agent |= strcasecmp(name, "User-Agent") == 0;
	text_printf(lines, "%s: %s\r\n", name, value);
	return 0;
}

static int
fill_http(const struct service_check *c, struct check_spec *spec, struct err *e)
{
	struct text lines = { 0 };
	int r = 0;

	spec->http = true;
	if (*str(c->method) && !http_is_token(c->method))
		return err_say(e, -EINVAL, "\"%.40s\" is not an HTTP method", c->method);
	spec->tls = strcasecmp(str(c->protocol), "https") == 0;
	spec->skip_verify = c->tls_skip_verify;
	if (*str(c->protocol) && !spec->tls && strcasecmp(c->protocol, "http") != 0)
		return err_say(
		    e, -EINVAL, "protocol \"%.40s\" is neither http nor https", c->protocol);
	str_set(&spec->server_name, c->tls_server_name);
	text_append(&lines, "", 0);
	for (size_t i = 0; i < c->header.n && r == 0; i++) {
		const struct strings *values = &c->header.v[i].value.values;

		for (size_t k = 0; k < values->n && r == 0; k++)
			r = add_header(spec, str(c->header.v[i].key), str(values->v[k]), &lines, e);
	}
	spec->method = mem_strdup(*str(c->method) ? c->method : "GET");
	spec->body = mem_strdup(str(c->body));
	spec->path = mem_strdup(str(c->path));
	spec->headers = lines.text;
	return r;
}

int
check_spec_make(struct sup *sup, const struct alloc *a, const struct task *task,
    const struct service *s, const struct service_check *c, struct check_spec *ret, struct err *e)
{
	bool own = *str(s->address);
	const struct service_place place = {
		.task = task,
		.address = !*str(c->address_mode) ? s->address : NULL,
		.mode = *str(c->address_mode) ? c->address_mode
			: own                 ? "auto"
					      : "host",
		.port_label = *str(c->port_label) ? c->port_label : s->port_label,
	};
	cleanup_free char *ip = NULL;
	int64_t port;
	int r;

	*ret = (struct check_spec){ 0 };
	r = service_place_resolve(sup, a, &place, &ip, &port, e);
	if (r == 0)
		r = check_addr_parse(str(ip), port, &ret->addr, e);
	if (r < 0)
		return r;
	/* Servers accept "HTTP" too. */
	if (strcasecmp(str(c->type), "http") == 0)
		return fill_http(c, ret, e);
	if (strcasecmp(str(c->type), "tcp") != 0)
		return err_say(e, -EINVAL, "type \"%.40s\" is neither http nor tcp", str(c->type));
	return 0;
}

void
check_spec_done(struct check_spec *s)
{
	free(s->path);
	free(s->method);
	free(s->headers);
	free(s->host);
	free(s->server_name);
	free(s->body);
	*s = (struct check_spec){ 0 };
}

/* FNV-1a of the text after one byte of salt. An id has the digests with two salts. */
static uint64_t
digest(const struct text *t, unsigned char salt)
{
	uint64_t h = (0xcbf29ce484222325 ^ salt) * 0x100000001b3;

	for (size_t i = 0; i < t->len; i++)
		h = (h ^ (unsigned char)t->text[i]) * 0x100000001b3;
	return h;
}

void
check_id(const struct alloc *a, const char *workload, const struct service *s,
    const struct service_check *c, char ret[CHECK_ID_SIZE])
{
	struct text t = { 0 };

	text_printf(&t, "%s %s %s %s %s ", str(a->id), workload, str(s->name), str(s->port_label),
	    str(s->address));
	model_to_text(&service_check_type, c, MODEL_COMPACT, &t);
	(void)snprintf(ret, CHECK_ID_SIZE, "%016llx%016llx", (unsigned long long)digest(&t, 1),
	    (unsigned long long)digest(&t, 2));
	text_done(&t);
}
