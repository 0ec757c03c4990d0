/* SPDX-License-Identifier: Apache-2.0 */
/* ren_main.c: the template-renderer, from its constant. It renders the templates of tasks, each in
 * a worker, and keeps no state between two requests. The supervisor starts it on demand. Runs in:
 * template-renderer. */
#include <errno.h>
#include <unistd.h>

#include "common/crash.h"
#include "template-renderer/ren.h"
#include "template-renderer/ren_filter.h"

#define RENDER_TIMEOUT_MS 10000

static const struct proc_spec template_renderer;
static struct workers workers = { .spec = &template_renderer };

/* The template-renderer reads nothing of the configuration. */
static int
close_config(void *state, const struct proc_args *args, struct err *e)
{
	(void)close(FD_CONFIG);
	return 0;
}

static void
answer_rendered(void *state, const struct worker *w, struct worker_result *res)
{
	struct err none = { 0 }, e = { 0 };

	CRASH_POINT(REN_AFTER_RENDER);
	(void)proc_answer(&template_renderer, w->type, w->serial, 0,
	    &(struct ren_render_rep){ .rendered = res->flag }, res->fd, &none, &e);
}

static int
handle_request(void *state, const struct ipc_packet *p, void *rep, int *ret_fd, struct err *e)
{
	if (p->type != REN_RENDER_REQ)
		return -EPROTO;
	CRASH_POINT(REN_BEFORE_RENDER);
	return worker_start(&workers, p, RENDER_TIMEOUT_MS, p->fds, 1, ren_render, p->msg,
	    answer_rendered, "render the template", e);
}

static void
collect(void *state)
{
	workers_collect(&workers);
}

static int
next_timeout(void *state)
{
	return workers_timeout(&workers);
}

static const struct proc_spec template_renderer = {
	.name = "template-renderer",
	.peer = IPC_TEMPLATE_RENDERER,
	.no_new_privs = true,
	.filter = &ren_prog,
	.handle = handle_request,
	.init = close_config,
	.between = collect,
	.timeout_ms = next_timeout,
};

int
main(int argc, char **argv)
{
	return proc_main(&template_renderer, argc, argv);
}
