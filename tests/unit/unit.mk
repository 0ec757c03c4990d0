# SPDX-License-Identifier: Apache-2.0
# unit.mk: unit tests. tests/unit/test_x.c is one program with libcheck, linked with the tree's libraries. A test that
# includes a process's header ("supervisor/…") is linked with that process without its main, and with its libraries.

CHECK_PACKAGES += busybox-static containernetworking-plugins iptables iproute2 curl python3 python3-msgpack skopeo openssl check procps util-linux e2fsprogs mandoc groff-base git zstd openssh-client libwrap0
UNIT_SRCS      := $(sort $(wildcard tests/unit/test_*.c))
UNIT_TESTS     := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/unit/%)

define unit_test
$(BUILD)/tests/unit/$(1): $(BUILD)/obj/tests/unit/$(1).o $(foreach p,$(2),$(BUILD)/lib$(p).a) $(LIBS_TREE)
	@mkdir -p $$(@D)
	@$$(if $$(V),,echo "  LINK  $$@")
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$< -Wl,--start-group $(foreach p,$(2),$(BUILD)/lib$(p).a) $$(LIBS_TREE) \
	    -Wl,--end-group $(foreach p,$(2),$$(LIBS_$(p))) -lcap -lprotobuf-c -ljansson $$(LIBS_hcl) -lcheck_pic -lsubunit -lrt -lm -pthread
endef
$(foreach t,$(UNIT_SRCS:tests/unit/%.c=%),$(eval $(call unit_test,$(t),$(call linked_processes,tests/unit/$(t).c))))
$(BUILD)/obj/tests/unit/%.o: CPPFLAGS += -DFIXTURES='"$(CURDIR)/tests/unit/fixtures"'

# All filters of the tree, for the test that tries every system call.
$(BUILD)/gen/tests/filters.h: $(FILTER_H) $(FILTERS)
	@mkdir -p $(@D)
	$(Q)for f in $(FILTERS:%_syscalls.def=%); do echo "#include \"$${f}_filter.h\""; done > $@
	$(Q)echo '#define ALL_FILTERS \' >> $@
	$(Q)for f in $(FILTERS:%_syscalls.def=%); do echo "	FILTER($${f##*/}, \"$${f}_syscalls.def\") \\"; done >> $@
	$(Q)echo >> $@
$(BUILD)/obj/tests/unit/test_filters.o: $(BUILD)/gen/tests/filters.h

TEST_PROGRAMS += $(UNIT_TESTS)

.PHONY: check check-crash check-probes check-unit check-deps layers tests test-peers
check-deps:
	@tools/deps.sh $(PACKAGES) $(CHECK_PACKAGES)
	@tools/deps.sh -x $(abspath $(BUILD))/sshd openssh-server
	@tools/deps.sh -x $(abspath $(BUILD))/docker-registry docker-registry
tests: $(BINARIES) $(TEST_PROGRAMS)
# The programs that system tests start besides the binaries.
test-peers: $(filter-out $(BUILD)/tests/unit/% $(BUILD)/tests/fuzz/%,$(TEST_PROGRAMS))
parallel = $(if $(filter -j%,$(MAKEFLAGS)),,-j$(shell nproc))
layers: $(BINARIES) ## check that each directory names only those that it may
	@DROVER_BUILD=$(abspath $(BUILD)) tools/layers.py
check: ## build and run all tests (needs root; installs missing Debian packages; SAN=1: with sanitizers)
	@[ "$$(id -u)" = 0 ] || { echo "make check needs root: it tests what root's processes do" >&2; exit 1; }
	@$(MAKE) --no-print-directory check-deps
	@$(MAKE) --no-print-directory $(parallel) all tests
	@$(MAKE) --no-print-directory $(parallel) BUILD=$(BUILD)/crash CRASH=1 all test-peers
	@$(MAKE) --no-print-directory layers
	@DROVER_BUILD=$(abspath $(BUILD)) tests/run $(CHECK_ARGS)
check-unit: ## run only the unit tests
	@$(MAKE) --no-print-directory $(parallel) $(UNIT_TESTS)
	@DROVER_BUILD=$(abspath $(BUILD)) tests/run $(CHECK_ARGS) unit/

check-crash: ## tests kills at each pass of each crash point of fetch, render, sign and replace, not only at some (needs root)
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/crash CRASH=1 all test-peers
	@DROVER_BUILD=$(BUILD) CRASH_PASSES=all tests/run -v -t 4 system/crash/3100 system/crash/3130 system/crash/3145 system/crash/315
check-probes: ## 1,000 probes while processes die at each point that a probe passes (needs root); PROBES=N makes N of them
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/crash CRASH=1 all
	@DROVER_BUILD=$(BUILD) PROBES=$(or $(PROBES),1000) tests/run -v -t 10 system/crash/3120
