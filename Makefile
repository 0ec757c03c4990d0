# SPDX-License-Identifier: Apache-2.0
# Makefile: builds drover into $(BUILD). `make help` lists the targets.

BUILD    ?= build$(if $(SAN),-san)$(if $(CRASH),-crash)
CC       ?= gcc
VERSION  := 0.1.0
BUILD_ID ?= $(VERSION)-$(shell git rev-parse --short=12 HEAD 2>/dev/null || echo tree)
SAN      ?=
CRASH    ?=
V        ?=
Q        := $(if $(V),,@)

CPPFLAGS += -D_GNU_SOURCE -DDROVER_VERSION='"$(VERSION)"' -I. -I$(BUILD)/gen
CFLAGS   ?= -O2 -g
CFLAGS   += -std=gnu17 -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wno-unused-parameter \
            -ffunction-sections -fdata-sections -fstack-protector-strong -fcf-protection -fPIE
LDFLAGS  += -pie -Wl,--gc-sections -Wl,-z,relro,-z,now -Wl,--as-needed
ifeq ($(WERROR),1)
CFLAGS   += -Werror
endif
ifneq ($(SAN),)
CFLAGS   += -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer -O1 -Wno-format-truncation
LDFLAGS  += -fsanitize=address,undefined $(BUILD)/obj/common/sanitizer.o
else
CPPFLAGS += -D_FORTIFY_SOURCE=2
endif
ifneq ($(CRASH),)
CPPFLAGS += -DDROVER_CRASH_POINTS
endif

# The libraries of each binary. Each one costs private memory, so a new entry needs a reason.
# RE2 and its C++ library are static: two shared libraries would cost each process 0.3 MB more of private memory, and a
# third of its start.
LIBS_re2          := -static-libgcc -Wl,-Bstatic -lre2 -lstdc++ -Wl,-Bdynamic
LIBS_launcher     := -lcap
LIBS_exec-helper  :=
LIBS_mount-helper :=
LIBS_file-helper  :=
LIBS_executor     :=
LIBS_csi-helper   := -lprotobuf-c -lgrpc_unsecure -lgpr
LIBS_heartbeat    := -lprotobuf-c -lmsgpackc
LIBS_check-helper := -lprotobuf-c
LIBS_job-parser    = -ljansson $(LIBS_hcl) -lm
LIBS_fetcher      := -lcurl -larchive -ljansson -lmd
LIBS_template     := -lunistring $(LIBS_re2) -lyaml -lmd
LIBS_template-renderer = -ljansson $(LIBS_template) -lm
LIBS_listener     :=
LIBS_image-fetcher := -ljansson -larchive -lmd
LIBS_image-unpacker := -larchive -lmd
LIBS_network-helper := -ljansson
LIBS_supervisor   := -lcap -lprotobuf-c -lsystemd -lsqlite3 -ljansson -lmicrohttpd -lhogweed -lnettle -lgmp -lpcre2-8 -lmd -lm
LIBS_hcl          := -lmpfr -lunistring $(LIBS_re2) -lyaml -lmd -lcrypt
LIBS_cli          := -lcap -ljansson $(LIBS_hcl) $(LIBS_template) -lm
LIBS_csi-local    := -lprotobuf-c -lgrpc_unsecure -lgpr -ljansson

PROCESSES := launcher supervisor mount-helper file-helper exec-helper executor csi-helper heartbeat check-helper job-parser fetcher template-renderer listener image-fetcher image-unpacker network-helper holder cli
PACKAGES  := gcc g++ make pkg-config libcap-dev libseccomp-dev libsystemd-dev libprotobuf-c-dev protobuf-c-compiler \
             libgrpc-dev libjansson-dev libmicrohttpd-dev libsqlite3-dev nettle-dev libgmp-dev libmsgpack-dev libpcre2-dev libre2-dev libssl-dev libmpfr-dev libunistring-dev libyaml-dev libmd-dev libcrypt-dev libcurl4-openssl-dev libarchive-dev musl-dev

.SUFFIXES:
.SECONDARY:
.DELETE_ON_ERROR:
.DEFAULT_GOAL := all

objs = $(patsubst %.c,$(BUILD)/obj/%.o,$(1:.cc=.c))
tree = $(shell find $(1) -name '*.c' -o -name '*.cc' 2>/dev/null | LC_ALL=C sort)
# For tests: the processes whose headers the file $(1) includes, or that it names in a line "link: supervisor".
linked_processes = $(sort $(filter $(PROCESSES),$(shell sed -n 's,^.* link: \(.*\) \*/$$,\1,p; s,^.include "\([a-z-]*\)/.*,\1,p' $(1))))

# --- generated: protobuf-c code, filters, the build id ---
PROTOS    := $(wildcard proto/*.proto)
PB_C      := $(PROTOS:proto/%.proto=$(BUILD)/gen/proto/%.pb-c.c)
PB_H      := $(PB_C:.c=.h)
FILTERS   := $(shell find launcher supervisor mount-helper file-helper executor csi-helper heartbeat check-helper job-parser fetcher template-renderer listener image-fetcher image-unpacker network-helper holder contrib -name '*syscalls.def' 2>/dev/null)
FILTER_H  := $(FILTERS:%_syscalls.def=$(BUILD)/gen/%_filter.h)

$(BUILD)/gen/proto/%.pb-c.c: proto/%.proto
	@mkdir -p $(@D)
	$(Q)protoc-c -I. --c_out=$(BUILD)/gen $<
$(BUILD)/gen/proto/%.pb-c.h: $(BUILD)/gen/proto/%.pb-c.c ;

# launcher/lau_config_syscalls.def becomes gen/launcher/lau_config_filter.h with lau_config_insns and lau_config_prog.
$(BUILD)/gen/%_filter.h: %_syscalls.def tools/filter_gen.c
	@mkdir -p $(@D)
	$(Q)$(CC) -D_GNU_SOURCE -I. -DFILTER_DEF='"$<"' $(if $(SAN),-DFILTER_SANITIZED) -o $@.gen tools/filter_gen.c -lseccomp
	$(Q)$@.gen $(*F) > $@.tmp && mv $@.tmp $@ && rm -f $@.gen

GENERATED := $(PB_H) $(FILTER_H)

$(BUILD)/obj/%.o: %.c | $(GENERATED)
	@mkdir -p $(@D)
	@$(if $(V),,echo "  CC    $<")
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c -o $@ $<
# Exceptions of the C++ library end the process: none may pass a function of C.
CXXFLAGS = $(filter-out -std=% -Wstrict-prototypes -Wmissing-prototypes,$(CFLAGS)) -std=gnu++17 -fno-exceptions -fno-rtti
$(BUILD)/obj/%.o: %.cc
	@mkdir -p $(@D)
	@$(if $(V),,echo "  CXX   $<")
	$(Q)$(CC) $(CPPFLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
$(BUILD)/obj/gen/%.o: $(BUILD)/gen/%.c | $(GENERATED)
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -w -MMD -MP -c -o $@ $<

# The build id is in one object only, so that a commit rebuilds little.
$(BUILD)/obj/common/proc.o: CPPFLAGS += -DBUILD_ID='"$(BUILD_ID)"'

# --- the tree's libraries: the linker takes only the objects that a process uses ---
$(BUILD)/libcommon.a: $(call objs,$(call tree,common))
$(BUILD)/libconfig.a: $(call objs,$(call tree,config))
$(BUILD)/libhcl.a: $(call objs,$(call tree,hcl))
$(BUILD)/liblang.a: $(call objs,$(call tree,lang))
$(BUILD)/libtemplate.a: $(call objs,$(call tree,template))
$(BUILD)/libjobspec.a: $(call objs,$(call tree,jobspec))
$(BUILD)/libmodel.a: $(call objs,$(call tree,model))
$(BUILD)/libproto.a: $(PB_C:$(BUILD)/gen/%.c=$(BUILD)/obj/gen/%.o)
$(BUILD)/lib%.a:
	@mkdir -p $(@D)
	$(Q)rm -f $@ && ar rcs $@ $^
LIBS_TREE := $(BUILD)/libconfig.a $(BUILD)/libtemplate.a $(BUILD)/libjobspec.a $(BUILD)/libhcl.a $(BUILD)/liblang.a $(BUILD)/libmodel.a $(BUILD)/libcommon.a $(BUILD)/libproto.a

# --- binaries: one per process directory ---
binary = $(if $(filter cli,$(1)),$(BUILD)/drover,$(BUILD)/drover-$(1))
define process
$(call binary,$(1)): $(call objs,$(call tree,$(1))) $(LIBS_TREE)
	@$(if $(V),,echo "  LINK  $$@")
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $$@ $(call objs,$(call tree,$(1))) \
	    -Wl,--start-group $(LIBS_TREE) -Wl,--end-group $(LIBS_$(1))
# All objects of the process but its main, for tests.
$(BUILD)/lib$(1).a: $(call objs,$(filter-out %_main.c,$(call tree,$(1))))
endef
$(foreach p,$(if $(SAN),$(PROCESSES),$(filter-out executor,$(PROCESSES))),$(eval $(call process,$(p))))

# There is one executor for each task, so it is static and linked with musl: the start of glibc alone takes 0.3 ms of
# CPU time, more than all of the executor's own code, and three times the private pages. Sanitizers and unit tests need
# glibc.
MUSL         := $(shell $(CC) -print-multiarch 2>/dev/null | sed s/gnu/musl/)
MUSL_CFLAGS   = $(CFLAGS) -nostdinc -isystem /usr/include/$(MUSL) -isystem $(shell $(CC) -print-file-name=include) \
                -idirafter /usr/include/$(MUSL:musl=gnu) -idirafter /usr/include -include common/musl.h -Wno-sign-compare # for CMSG_NXTHDR
MUSL_CRT     := /usr/lib/$(MUSL)
EXECUTOR_COMMON := clock clone crash err exe_record fd id lease lease_deadline log mount_proof path pid privs sd task_spec utf8
EXECUTOR_OBJS   := $(patsubst %.c,$(BUILD)/musl/%.o,$(call tree,executor) $(EXECUTOR_COMMON:%=common/%.c))
ifeq ($(SAN),)
$(BUILD)/drover-executor: $(EXECUTOR_OBJS)
	@$(if $(V),,echo "  LINK  $@")
	$(Q)$(CC) $(CFLAGS) $(filter-out -pie,$(LDFLAGS)) -static-pie -nostdlib -o $@ $(MUSL_CRT)/rcrt1.o $(MUSL_CRT)/crti.o \
	    $^ $(MUSL_CRT)/libc.a $(shell $(CC) -print-libgcc-file-name) $(MUSL_CRT)/crtn.o
$(BUILD)/libexecutor.a: $(call objs,$(filter-out %_main.c,$(call tree,executor)))
endif
$(BUILD)/musl/%.o: %.c | $(GENERATED)
	@mkdir -p $(@D)
	@$(if $(V),,echo "  CC    $< (musl)")
	$(Q)$(CC) $(filter-out -D_FORTIFY_SOURCE=2,$(CPPFLAGS)) $(MUSL_CFLAGS) -MMD -MP -c -o $@ $<
BINARIES := $(foreach p,$(PROCESSES),$(if $(wildcard $(p)/*_main.c),$(call binary,$(p))))

ifneq ($(wildcard contrib/csi-local/*_main.c),)
$(BUILD)/drover-csi-local: $(call objs,$(call tree,contrib/csi-local)) $(LIBS_TREE)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $(call objs,$(call tree,contrib/csi-local)) -Wl,--start-group $(LIBS_TREE) \
	    -Wl,--end-group $(LIBS_csi-local)
BINARIES += $(BUILD)/drover-csi-local
endif

.PHONY: all clean help deps
# Manual pages that contain tables of other files.
MAN_PAGES := $(patsubst docs/%.in,$(BUILD)/%,$(wildcard docs/*.5.in))
$(BUILD)/%.5: docs/%.5.in tools/man.awk docs/configuration.md docs/supported.md jobspec/job_blocks.def $(wildcard contrib/examples/*.hcl)
	@mkdir -p $(@D)
	$(Q)awk -f tools/man.awk $< >$@.new && mv $@.new $@
all: $(BINARIES) $(MAN_PAGES) ## build everything into build/
clean: ## remove build/
	rm -rf $(BUILD)
help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16
deps: ## install the Debian packages that are missing (needs root)
	@tools/deps.sh $(PACKAGES)

.PHONY: demo
demo: ## install missing packages, build, and show a volume outlive its job (needs root)
	@[ "$$(id -u)" = 0 ] || { echo "make demo needs root: it installs packages and starts an agent" >&2; exit 1; }
	@$(MAKE) --no-print-directory deps
	@$(MAKE) --no-print-directory -j"$$(nproc)" all
	@tools/demo.sh $(BUILD)

# --- installation: the command in bin, the processes in one directory, where drover.service expects them ---
PREFIX  ?= /usr
LIBEXEC := $(PREFIX)/libexec/drover
UNITDIR := $(PREFIX)/lib/systemd/system
# Where bash, zsh and fish look for completions.
BASH_COMPLETION := $(PREFIX)/share/bash-completion/completions/drover
ZSH_COMPLETION  := $(PREFIX)/share/zsh/$(if $(filter /usr,$(PREFIX)),vendor-completions,site-functions)/_drover
FISH_COMPLETION := $(PREFIX)/share/fish/vendor_completions.d/drover.fish
# Those with @ are for further agents on the machine, and differ from the others in three lines.
SERVICES := drover.service drover-tasks.service drover@.service drover-tasks@.service
.PHONY: install uninstall
install: $(BINARIES) $(MAN_PAGES) ## install into $(DESTDIR)$(PREFIX), with units, tmpfiles.d and sysusers.d
	install -d $(addprefix $(DESTDIR),$(PREFIX)/bin $(LIBEXEC) $(UNITDIR) $(PREFIX)/lib/tmpfiles.d $(PREFIX)/lib/sysusers.d)
	install -m 755 $(BUILD)/drover $(DESTDIR)$(PREFIX)/bin/drover
	install -m 755 $(filter-out $(BUILD)/drover,$(BINARIES)) $(DESTDIR)$(LIBEXEC)/
	install -D -m 644 docs/drover.1 $(DESTDIR)$(PREFIX)/share/man/man1/drover.1
	install -D -m 644 -t $(DESTDIR)$(PREFIX)/share/man/man5 $(MAN_PAGES)
	install -D -m 644 contrib/examples/drover.hcl $(DESTDIR)$(PREFIX)/share/doc/drover/drover.hcl
	install -D -m 644 contrib/completion/drover.bash $(DESTDIR)$(BASH_COMPLETION)
	install -D -m 644 contrib/completion/_drover $(DESTDIR)$(ZSH_COMPLETION)
	install -D -m 644 contrib/completion/drover.fish $(DESTDIR)$(FISH_COMPLETION)
	install -m 644 contrib/systemd/drover.service contrib/systemd/drover.socket contrib/systemd/drover-tasks.service \
	    $(DESTDIR)$(UNITDIR)/
	sed -e 's/^Description=.*/& %i/; s/drover-tasks\.service/drover-tasks@%i.service/g' \
	    -e 's,^ExecStart=.*,& -config /etc/drover-%i,; /^Also=/d' contrib/systemd/drover.service >'$(DESTDIR)$(UNITDIR)/drover@.service'
	sed -e 's/^Description=.*/& %i/; s,^ExecStart=.*,& /run/drover-%i,' contrib/systemd/drover-tasks.service \
	    >'$(DESTDIR)$(UNITDIR)/drover-tasks@.service'
	sed -i 's,/usr/libexec/drover,$(LIBEXEC),' $(addprefix $(DESTDIR)$(UNITDIR)/,$(SERVICES))
	install -m 644 contrib/systemd/tmpfiles.conf $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/drover.conf
	install -m 644 contrib/systemd/sysusers.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/drover.conf
	@echo "Next: systemd-sysusers && systemd-tmpfiles --create   # the users and directories"
	@echo "      install -D -m 644 $(PREFIX)/share/doc/drover/drover.hcl /etc/drover/drover.hcl   # an example to edit"

# The configuration and the data stay. What agents have left is removed by `drover cleanup -all -users`, before this.
uninstall: ## remove what install has put into $(DESTDIR)$(PREFIX)
	rm -rf $(DESTDIR)$(LIBEXEC) $(DESTDIR)$(PREFIX)/share/doc/drover
	rm -f $(DESTDIR)$(PREFIX)/bin/drover $(DESTDIR)$(PREFIX)/share/man/man1/drover.1 \
	    $(addprefix $(DESTDIR),$(BASH_COMPLETION) $(ZSH_COMPLETION) $(FISH_COMPLETION)) \
	    $(addprefix $(DESTDIR)$(PREFIX)/share/man/man5/,$(notdir $(MAN_PAGES))) \
	    $(addprefix $(DESTDIR)$(UNITDIR)/,drover.socket $(SERVICES)) \
	    $(DESTDIR)$(PREFIX)/lib/tmpfiles.d/drover.conf $(DESTDIR)$(PREFIX)/lib/sysusers.d/drover.conf
	@echo "The configuration, the data and the users stay."

# Each directory of tests has its own rules.
include $(wildcard tests/*/*.mk)
$(if $(SAN),$(BINARIES) $(TEST_PROGRAMS): | $(BUILD)/obj/common/sanitizer.o)
-include $(shell find $(BUILD)/obj $(BUILD)/musl -name '*.d' 2>/dev/null)
