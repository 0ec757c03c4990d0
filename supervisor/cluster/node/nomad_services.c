// SPDX-License-Identifier: Apache-2.0
/* nomad_services.c: registers and deregisters services of this node's allocs at the servers. A
 * service has a row from before its registration until after its deregistration, so that none is
 * left at the servers if the agent dies. Runs in: supervisor. */
#include "supervisor/cluster/node/nomad_services.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <systemd/sd-event.h>

#include "common/list.h"
#include "common/log.h"
#include "supervisor/cluster/node/nomad.h"
#include "supervisor/cluster/node/nomad_call.h"
#include "supervisor/cluster/node/nomad_register.h"
#include "supervisor/core/journal.h"
#include "supervisor/core/store.h"

#define CALL_DEADLINE_MS 30000
#define RETRY_MS         1000
#define RETRY_MAX_MS     60000
#define BATCH_MAX        100

struct nomad_service {
	struct source_service base;
	struct dirty row;
	bool registered; /* the servers have this version */
	bool sending;    /* the call in progress has it */
	bool refused;    /* the servers refused this version */
	bool deleted;    /* to be freed after its row is deleted */
	uint64_t call;
};

static void deregister_service(struct nomad *n, struct source_service *s);

/* Rows. */

static struct nomad_service *
own(struct source_service *s)
{
	return container_of(s, struct nomad_service, base);
}

static struct source_service *
of_row(struct dirty *d)
{
	return &container_of(d, struct nomad_service, row)->base;
}

static int
write_row(struct sup *sup, struct dirty *d, struct err *e)
{
	struct source_service *s = of_row(d);
	struct text t = { 0 };
	int r;

	if (own(s)->deleted)
		return STORE_EXEC(sup->store, STMT_SERVICE_DELETE, e, SV_TEXT(s->reg.id));
	model_to_text(&service_registration_type, &s->reg, MODEL_COMPACT, &t);
	r = STORE_EXEC(sup->store, STMT_SERVICE_PUT, e, SV_TEXT(s->reg.id), SV_TEXT(s->workload),
	    SV_TEXT(t.text));
	text_done(&t);
	return r;
}

static void
on_written(struct sup *sup, struct dirty *d)
{
	struct source_service *s = of_row(d);

	if (own(s)->deleted)
		service_table_remove(&nomad_of_sup(sup)->services_gone, s);
}

static struct source_service *
add_service(struct nomad *n, struct service_table *t, struct sup_alloc *sa, const char *workload,
    struct service_registration *reg)
{
	struct source_service *s =
	    service_table_add(t, sizeof(struct nomad_service), sa, workload, reg);

	own(s)->row.write = write_row;
	own(s)->row.point = CRASH_ROW_SERVICE;
	own(s)->row.written = on_written;
	return s;
}

static int
load_row(void *arg, const struct store_row *row, struct err *e)
{
	const char *json = store_col_text(row, 2);
	struct nomad *n = arg;
	struct service_registration reg;
	struct err why = { 0 };
	struct sup_alloc *sa = NULL;
	struct id id;

	service_registration_init(&reg);
	if (model_from_text(&service_registration_type, json, strlen(json), &reg, &why) < 0) {
		journal_error(JOURNAL_STATE, NULL,
		    "state.db: cannot read service %s, it is ignored: %s", store_col_text(row, 0),
		    why.msg);
		return 0;
	}
	if (id_from_uuid(str(reg.alloc_id), &id))
		sa = alloc_find(n->src.base.sup, &id);
	(void)add_service(
	    n, sa ? &n->services : &n->services_gone, sa, store_col_text(row, 1), &reg);
	return 0;
}

int
nomad_services_load(struct nomad *n, struct err *e)
{
	return store_each(n->src.base.sup->store, STMT_SERVICE_ALL, NULL, 0, load_row, n, e);
}

/* Deregistration. */

static void
on_retry(void *arg)
{
	struct nomad *n = arg;
	struct source_service *s;

	LIST_FOREACH (s, &n->services.list, link)
		own(s)->refused = false;
	LIST_FOREACH (s, &n->services_gone.list, link)
		deregister_service(n, s);
	nomad_services_soon(n);
}

static void
retry_later(struct nomad *n)
{
	if (!sup_timer_is_set(&n->services_timer))
		nomad_after(n, &n->services_timer,
		    nomad_retry_ms(&n->services_failures, RETRY_MS, RETRY_MAX_MS), on_retry);
}

static struct source_service *
find_gone(struct nomad *n, const char *id)
{
	struct source_service *s;

	LIST_FOREACH (s, &n->services_gone.list, link)
		if (!own(s)->deleted && str_eq(s->reg.id, id))
			return s;
	return NULL;
}

static bool
is_there(struct nomad *n, const char *id)
{
	const struct source_service *s;

	LIST_FOREACH (s, &n->services.list, link)
		if (str_eq(s->reg.id, id))
			return true;
	return false;
}

/* Removes a service that the servers do not have any more. If it is to be registered again, the new
 * one keeps its row. */
static void
delete_service(struct nomad *n, struct source_service *s)
{
	struct sup *sup = n->src.base.sup;

	if (is_there(n, s->reg.id)) {
		turn_forget_write(sup, &own(s)->row);
		service_table_remove(&n->services_gone, s);
		nomad_services_soon(n);
		return;
	}
	own(s)->deleted = true;
	turn_write(sup, &own(s)->row);
}

static void
on_deregistered(
    struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	struct source_service *s = arg;

	own(s)->call = 0;
	/* With ACLs enabled, servers report a missing service in this way. */
	if (r == -EREMOTEIO && (strstr(e->msg, "service registration not found") ||
				   strstr(e->msg, "Permission denied")))
		r = 0;
	if (r == 0) {
		delete_service(n, s);
		return;
	}
	log_info("deregister service %s: %s; retrying", str(s->reg.service_name), e->msg);
	retry_later(n);
}

static void
deregister_service(struct nomad *n, struct source_service *s)
{
	struct rpc_service_delete_req req;

	/* While its registration is in progress, on_registered() handles it later. */
	if (own(s)->call || own(s)->deleted || own(s)->sending || !n->ready)
		return;
	rpc_service_delete_req_init(&req);
	nomad_write(n, &req.write);
	str_set(&req.write.namespace, s->reg.namespace);
	str_set(&req.id, s->reg.id);
	own(s)->call = nomad_call(n, "ServiceRegistration.DeleteByID", &rpc_service_delete_req_type,
	    &req, CALL_DEADLINE_MS, LINK_REPEAT, on_deregistered, s);
	rpc_service_delete_req_done(&req);
}

/* Removes the service from its alloc and deregisters it; the row stays until the servers have
 * answered. */
static void
drop_service(struct nomad *n, struct source_service *s)
{
	service_table_detach(s);
	service_table_move(&n->services, &n->services_gone, s);
	deregister_service(n, s);
}

/* Registration. */

static bool
is_wanted(struct nomad *n, struct source_service *s)
{
	return !own(s)->registered && !own(s)->refused && !find_gone(n, s->reg.id);
}

/* Deregisters services that were dropped during their registration. */
static void
end_sending(struct nomad *n, bool registered, bool refused)
{
	struct source_service *s;

	LIST_FOREACH (s, &n->services.list, link) {
		if (!own(s)->sending)
			continue;
		own(s)->sending = false;
		own(s)->registered |= registered;
		own(s)->refused |= refused;
	}
	LIST_FOREACH (s, &n->services_gone.list, link) {
		if (!own(s)->sending)
			continue;
		own(s)->sending = false;
		deregister_service(n, s);
	}
}

/* A server refuses a whole batch because of one service. Then each is sent alone, and the refused
 * one waits while the others are registered. */
static void
on_registered(struct sup *sup, void *arg, int r, const void *body, size_t len, const struct err *e)
{
	struct nomad *n = nomad_of_sup(sup);
	bool unknown = r < 0 && nomad_register_if_unknown(n, r, e);
	bool invalid = r == -EREMOTEIO && !unknown && !strstr(e->msg, "Permission denied");
	bool alone = n->services_sent == 1;

	n->services_call = 0;
	end_sending(n, r == 0, invalid && alone);
	n->services_single = invalid && !alone;
	if (r < 0 && !n->services_single) {
		log_info("register services: %s; retrying", e->msg);
		retry_later(n);
	}
	if (r == 0)
		n->services_failures = 0;
	if (r == 0 || invalid)
		nomad_services_soon(n);
}

/* Sends all services that the servers do not have in one call. */
static void
send_services(struct sup *sup, struct deferred *d)
{
	struct nomad *n = nomad_of_sup(sup);
	struct rpc_services_req req;
	struct source_service *s;
	size_t max = n->services_single ? 1 : BATCH_MAX, count = 0;

	if (!n->ready || n->services_call)
		return;
	rpc_services_req_init(&req);
	nomad_write(n, &req.write);
	LIST_FOREACH (s, &n->services.list, link) {
		struct service_registration *copy;

		if (count == max)
			break;
		if (!is_wanted(n, s))
			continue;
		copy = list_add(service_registration, &req.services);
		service_registration_copy(&s->reg, copy);
		own(s)->sending = true;
		count++;
	}
	n->services_sent = count;
	if (count > 0)
		n->services_call =
		    nomad_call(n, "ServiceRegistration.Upsert", &rpc_services_req_type, &req,
			CALL_DEADLINE_MS, LINK_REPEAT, on_registered, NULL);
	rpc_services_req_done(&req);
}

void
nomad_services_soon(struct nomad *n)
{
	n->services_send.run = send_services;
	turn_defer(n->src.base.sup, &n->services_send);
}

void
nomad_services_all(struct nomad *n)
{
	struct source_service *s;

	LIST_FOREACH (s, &n->services.list, link)
		own(s)->registered = own(s)->refused = false;
	LIST_FOREACH (s, &n->services_gone.list, link)
		deregister_service(n, s);
	nomad_services_soon(n);
}

static void
put_service(struct nomad *n, struct sup_alloc *sa, const char *workload,
    const struct service_registration *reg)
{
	struct source_service *s = service_table_find(sa, reg->id);
	struct service_registration copy;

	if (s && own(s)->registered && model_equal(&service_registration_type, &s->reg, reg))
		return;
	service_registration_copy(reg, &copy);
	if (s) {
		service_registration_done(&s->reg);
		s->reg = copy;
	} else {
		s = add_service(n, &n->services, sa, workload, &copy);
	}
	own(s)->registered = own(s)->refused = own(s)->sending = false;
	turn_write(n->src.base.sup, &own(s)->row);
}

void
nomad_services_set(struct source *source, struct sup_alloc *sa, const char *workload,
    const struct service_registration *v, size_t n)
{
	struct nomad *nomad = nomad_of(source);
	struct source_service *s, *next;

	LIST_FOREACH_SAFE (s, &sa->services, alloc_link, next)
		if (service_is_replaced(s, workload, v, n))
			drop_service(nomad, s);
	for (size_t i = 0; i < n; i++)
		put_service(nomad, sa, workload, &v[i]);
	if (n > 0)
		nomad_services_soon(nomad);
}

/* Deregisters services that the previous supervisor left from ended allocs. */
void
nomad_services_start(struct nomad *n)
{
	struct source_service *s, *next;

	LIST_FOREACH_SAFE (s, &n->services.list, link, next)
		if (client_alloc_ended(s->sa))
			drop_service(n, s);
}

void
nomad_services_free(struct nomad *n)
{
	struct service_table *const tables[] = { &n->services, &n->services_gone };
	struct source_service *s;

	sup_timer_cancel(&n->services_timer);
	turn_forget_deferred(n->src.base.sup, &n->services_send);
	for (size_t i = 0; i < ELEMENTSOF(tables); i++)
		while ((s = LIST_FIRST(&tables[i]->list))) {
			turn_forget_write(n->src.base.sup, &own(s)->row);
			service_table_remove(tables[i], s);
		}
}
