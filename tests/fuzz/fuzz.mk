# SPDX-License-Identifier: Apache-2.0
# fuzz.mk: one target per decoder, tests/fuzz/fuzz_x.c, with its corpus in tests/fuzz/corpus/x. `make fuzz` builds the
# targets with clang's libFuzzer and sanitizers and runs each for FUZZ_SECONDS; `make check` replays the corpus in an
# ordinary build. A target is linked as unit tests are.

FUZZ_SECONDS  ?= 60
FUZZ_PACKAGES := clang libclang-rt-14-dev llvm
FUZZ_TARGETS  := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_*.c)))
FUZZ          ?=
ifneq ($(FUZZ),)
CFLAGS  += -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
LDFLAGS += -fsanitize=fuzzer,address,undefined
endif

define fuzz_target
$(BUILD)/tests/fuzz/$(if $(FUZZ),fuzz,replay)_$(1): $(BUILD)/obj/tests/fuzz/fuzz_$(1).o \
    $(if $(FUZZ),,$(BUILD)/obj/tests/fuzz/replay_main.o) $(foreach p,$(2),$(BUILD)/lib$(p).a) $(LIBS_TREE)
	@mkdir -p $$(@D)
	@$$(if $$(V),,echo "  LINK  $$@")
	$$(Q)$$(CC) $$(CFLAGS) $$(LDFLAGS) -o $$@ $$(filter %.o,$$^) -Wl,--start-group $$(filter %.a,$$^) -Wl,--end-group \
	    $(foreach p,$(2),$$(LIBS_$(p))) -lcap -lprotobuf-c -ljansson $$(LIBS_hcl) -lm
endef
$(foreach t,$(FUZZ_TARGETS),$(eval $(call fuzz_target,$(t),$(call linked_processes,tests/fuzz/fuzz_$(t).c))))

FUZZ_BINARIES := $(FUZZ_TARGETS:%=$(BUILD)/tests/fuzz/$(if $(FUZZ),fuzz,replay)_%)
ifeq ($(FUZZ),)
TEST_PROGRAMS += $(FUZZ_BINARIES)
endif

.PHONY: fuzz fuzz-build
fuzz-build: $(FUZZ_BINARIES)
fuzz: ## fuzz each decoder for FUZZ_SECONDS (60) with clang; findings are in build/fuzz/findings
	@tools/deps.sh $(PACKAGES) $(FUZZ_PACKAGES)
	@$(MAKE) --no-print-directory $(parallel) BUILD=$(BUILD)/fuzz CC=clang FUZZ=1 fuzz-build
	@tests/fuzz/run $(BUILD)/fuzz $(FUZZ_SECONDS) $(FUZZ_TARGETS)
