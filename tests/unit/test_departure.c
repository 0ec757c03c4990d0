// SPDX-License-Identifier: Apache-2.0
/* test_departure.c: every way between the states of a node that lands or retires, and every one
 * that is refused. */
#include <string.h>

#include "supervisor/alloc/departure.h"
#include "tests/unit/unit.h"

/* One letter for each state, in their order. */
static const char letters[] = "nlLbrRwW";

/* For each state, by event in the order of enum departure_event: the next state, or '.' if the
 * event is refused. */
static const char *const matrix[DEPARTURE_STATES] = {
	/*                  land retire cancel finished started returned rejoin forgotten */
	[DEPARTURE_NONE] = "lr..n..w",
	[DEPARTURE_LANDING] = "lrbLl...",
	[DEPARTURE_LANDED] = "....b...",
	[DEPARTURE_RETURNING] = "lr..bn..",
	[DEPARTURE_RETIRING] = ".rbRr...",
	[DEPARTURE_RETIRED] = "....R.n.",
	[DEPARTURE_RENEWING] = ".r.Ww..w",
	[DEPARTURE_RENEWED] = "....n...",
};

START_TEST(every_event_in_every_state)
{
	enum departure_state state = (enum departure_state)_i;

	ck_assert_uint_eq(strlen(matrix[state]), DEPARTURE_EVENTS);
	for (enum departure_event event = 0; event < DEPARTURE_EVENTS; event++) {
		struct err e = { 0 };
		int next = departure_next(state, event, &e);
		char found = next >= 0 ? letters[next] : '.';

		if (found != matrix[state][event])
			ck_abort_msg("%s, event %d: %c instead of %c", departure_names[state],
			    (int)event, found, matrix[state][event]);
		ck_assert_int_eq(next < 0, e.msg[0] != '\0');
	}
}
END_TEST

static void
add(TCase *tc)
{
	tcase_add_loop_test(tc, every_event_in_every_state, 0, DEPARTURE_STATES);
}

int
main(void)
{
	return unit_run("departure", add);
}
