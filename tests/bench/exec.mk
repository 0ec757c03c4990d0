# SPDX-License-Identifier: Apache-2.0
# exec.mk: the benchmark of the executor path, and the trivial task that all benchmarks run.

$(BUILD)/tests/bench_task: tests/bench/bench_task.c
	@mkdir -p $(@D)
	$(Q)$(CC) -O2 -static -o $@ $<
$(BUILD)/tests/bench_exec: tests/bench/bench_exec.c $(LIBS_TREE)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) $(LDFLAGS) -o $@ $< -Wl,--start-group $(LIBS_TREE) -Wl,--end-group -lcap -lprotobuf-c

BENCH_PROGRAMS += $(BUILD)/tests/bench_exec $(BUILD)/tests/bench_task
