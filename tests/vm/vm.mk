# SPDX-License-Identifier: Apache-2.0
# vm.mk: the system tests on Debian's own kernel.

.PHONY: check-vm
check-vm: all $(TEST_PROGRAMS) ## run the system tests in a guest with Debian's kernel, cgroup v2 and systemd (needs root)
	@tools/deps.sh qemu-system-x86 mmdebstrap busybox-static
	@$(MAKE) --no-print-directory BUILD=$(BUILD)/crash CRASH=1 all test-peers
	@tests/vm/run $(BUILD) $(VM_TESTS)
