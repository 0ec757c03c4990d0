// SPDX-License-Identifier: Apache-2.0
/* test_local_ports.c: static and dynamic ports of one address: who gets them, and why not. */
#include <errno.h>

#include "supervisor/server/capacity/local_ports.h"
#include "tests/unit/local_server.h"

static struct task_group group;
static struct network_resource *net;
static struct local_shortage shortage;
static struct err e;

/* A node with the dynamic ports 20000 and 20001, and a group without ports. */
static void
begin(void)
{
	begin_server(1000);
	str_set(&node.reserved_resources.networks.reserved_host_ports, "22,8000-8010");
	task_group_init(&group);
	net = list_add(network_resource, &group.networks);
	shortage = (struct local_shortage){ 0 };
	e = (struct err){ 0 };
}

static void
end(void)
{
	task_group_done(&group);
	end_server();
}

static struct port *
add_static(const char *label, int64_t value)
{
	struct port *port = list_add(port, &net->reserved_ports);

	str_set(&port->label, label);
	port->value = value;
	return port;
}

static struct port *
add_dynamic(const char *label)
{
	struct port *port = list_add(port, &net->dynamic_ports);

	str_set(&port->label, label);
	return port;
}

static int
fill(struct alloc_resources *ret)
{
	return local_ports_fill(&local, ret, &group, &shortage, &e);
}

/* Chooses and reserves the group's ports for an alloc with this name. */
static void
reserve_ports(struct sup_alloc *sa, const char *name)
{
	*sa = (struct sup_alloc){ 0 };
	alloc_init(&sa->a);
	str_set(&sa->a.name, name);
	sa->a.allocated_resources = alloc_resources_new();
	ck_assert_int_eq(fill(sa->a.allocated_resources), 0);
	local_ports_reserve(&local, sa);
}

static void
release_ports(struct sup_alloc *sa)
{
	local_ports_release(&local, sa);
	alloc_done(&sa->a);
}

static int64_t
port_of(const struct sup_alloc *sa, size_t i)
{
	return sa->a.allocated_resources->shared.ports.v[i].value;
}

/* Tries to choose the group's ports, without reserving them. */
static int
try_ports(void)
{
	cleanup_done(alloc_resources) struct alloc_resources tried;

	alloc_resources_init(&tried);
	return fill(&tried);
}

START_TEST(a_static_port_has_one_holder)
{
	struct sup_alloc a, b;

	begin();
	add_static("http", 9000);
	reserve_ports(&a, "j.g[0]");
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	ck_assert_str_eq(e.msg, "network: reserved port collision http=9000 (j.g[0] has it)");
	ck_assert_int_eq(shortage.kind, LOCAL_SHORT_PORT);
	ck_assert_ptr_eq(local_port_holder(&shortage), &a);
	net->reserved_ports.v[0].ignore_collision = true;
	reserve_ports(&b, "k.g[0]");
	net->reserved_ports.v[0].ignore_collision = false;
	/* b shares the port, so its end does not free it. */
	release_ports(&b);
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	release_ports(&a);
	ck_assert_ptr_null(local_port_holder(&shortage));
	ck_assert_int_eq(try_ports(), 0);
	end();
}
END_TEST

/* Waiting for another alloc does not help here, so the shortage is not one of the port. */
START_TEST(a_static_port_that_never_fits)
{
	begin();
	add_static("ssh", 22);
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	ck_assert_str_eq(e.msg,
	    "network: reserved port collision ssh=22 (the node's configuration reserves it)");
	ck_assert_int_eq(shortage.kind, LOCAL_SHORT_OTHER);
	net->reserved_ports.v[0].value = 9000;
	add_static("again", 9000);
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	ck_assert_str_eq(
	    e.msg, "network: reserved port collision again=9000 (the same group has it twice)");
	ck_assert_int_eq(shortage.kind, LOCAL_SHORT_OTHER);
	str_set(&net->reserved_ports.v[1].host_network, "lan");
	ck_assert_int_eq(try_ports(), -ENOENT);
	ck_assert_str_eq(e.msg, "missing host network \"lan\" for port \"again\"");
	end();
}
END_TEST

/* A shortage of dynamic ports says how many were free: a group that needs fewer may fit. */
START_TEST(dynamic_ports_run_out)
{
	struct sup_alloc a, b;

	begin();
	add_dynamic("x");
	reserve_ports(&a, "j.g[0]");
	add_dynamic("y");
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	ck_assert_int_eq(shortage.kind, LOCAL_SHORT_DYNAMIC_PORTS);
	ck_assert_int_eq(shortage.port, 1);
	ck_assert_ptr_null(local_port_holder(&shortage));
	list_remove(port, &net->dynamic_ports, 1);
	reserve_ports(&b, "k.g[0]");
	ck_assert_int_eq(port_of(&a, 0) + port_of(&b, 0), 20000 + 20001);
	ck_assert_int_eq(try_ports(), -EADDRINUSE);
	ck_assert_int_eq(shortage.port, 0);
	release_ports(&a);
	ck_assert_int_eq(try_ports(), 0);
	release_ports(&b);
	end();
}
END_TEST

/* The port of an alloc that has just ended is not given to the next one while another is free. */
START_TEST(a_dynamic_port_is_not_used_again_at_once)
{
	struct sup_alloc a, b;
	int64_t before;

	begin();
	add_dynamic("x")->to = -1;
	reserve_ports(&a, "j.g[0]");
	before = port_of(&a, 0);
	ck_assert_int_eq(a.a.allocated_resources->shared.ports.v[0].to, before);
	release_ports(&a);
	reserve_ports(&b, "j.g[0]");
	ck_assert_int_ne(port_of(&b, 0), before);
	release_ports(&b);
	end();
}
END_TEST

/* Dynamic ports avoid static and reserved ports of their range. */
START_TEST(dynamic_ports_avoid_others)
{
	struct sup_alloc a;

	begin();
	add_static("fixed", 20000);
	add_dynamic("x");
	reserve_ports(&a, "j.g[0]");
	ck_assert_int_eq(port_of(&a, 1), 20001);
	release_ports(&a);
	list_remove(port, &net->reserved_ports, 0);
	str_set(&node.reserved_resources.networks.reserved_host_ports, "20001");
	for (int i = 0; i < 3; i++) {
		reserve_ports(&a, "j.g[0]");
		ck_assert_int_eq(port_of(&a, 0), 20000);
		release_ports(&a);
	}
	end();
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_test(tc, a_static_port_has_one_holder);
	tcase_add_test(tc, a_static_port_that_never_fits);
	tcase_add_test(tc, dynamic_ports_run_out);
	tcase_add_test(tc, a_dynamic_port_is_not_used_again_at_once);
	tcase_add_test(tc, dynamic_ports_avoid_others);
}

int
main(void)
{
	return unit_run("local_ports", add);
}
