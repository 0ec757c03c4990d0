// SPDX-License-Identifier: Apache-2.0
/*
 * filter_gen.c: generates one system call filter at build time as a constant BPF array, so that no
 * process that runs as root links libseccomp. It is compiled once per list:
 *
 * -DFILTER_DEF='"mount-helper/mnt_syscalls.def"'. `filter_gen NAME` prints a header with `static
 * const struct sock_filter NAME_insns[]` and `NAME_prog`. For the test that tries all system calls,
 * NAME_allowed[], NAME_denied[] and NAME_nosys[] have the numbers that are treated so with any
 * arguments, and NAME_kills says how the others are treated. A list that allows by default does not
 * allow calls that this library does not know: all numbers above NAME_newest give ENOSYS, as on a
 * kernel of that age.
 *
 * Entries of a list:
 *   DEFAULT(KILL) or DEFAULT(ALLOW)      once, first
 *   ALLOW(name)                          this call, any arguments
 *   ALLOW_ARG(name, n, value)            only with argument n (0..5) equal to value
 *                                        (32 bits compared)
 *   ALLOW_ARGS(name, first, second, ...) only with its first two or three arguments equal to these
 *   ALLOW_ARG_MASK(name, n, mask, value) only if (argument n & mask) == value
 *   DENY(name)                           EPERM instead of the default
 *   DENY_ARG_MASK(name, n, mask, value)  EPERM if (argument n & mask) == value
 *   NOSYS(name)                          ENOSYS, for calls whose callers have a fallback
 *   VDSO                                 the calls that libc makes in user space if the
 *                                        machine's clock permits, else (TSC unstable, HPET,
 *                                        emulated) in the kernel
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/quota.h>
#include <linux/seccomp.h>
#include <seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/prctl.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#define X32_BIT 0x40000000u

static scmp_filter_ctx ctx;
static struct numbers {
	int v[1024], n;
} allowed, denied, nosys;
static bool kills;
static int newest; /* the highest number that the library knows */

static void
must(int r, const char *what)
{
	if (r < 0) {
		fprintf(stderr, "filter_gen: %s: %s\n", what, strerror(-r));
		exit(1);
	}
}

static int
number(const char *name)
{
	int nr = seccomp_syscall_resolve_name(name);

	/* May be newer than the library; its number is the same on all machines. */
	if (nr == __NR_SCMP_ERROR && strcmp(name, "file_setattr") == 0)
		nr = 469;
	if (nr == __NR_SCMP_ERROR)
		must(-ENOSYS, name);
	return nr;
}

static void
find_newest(void)
{
	for (int nr = 0; nr < 1024; nr++) {
		char *name = seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, nr);

		if (name)
			newest = nr;
		free(name);
	}
}

static void
start(unsigned action)
{
	find_newest();
	kills = action != SCMP_ACT_ALLOW;
	ctx = seccomp_init(action);
	if (!ctx)
		must(-ENOMEM, "init");
	must(seccomp_attr_set(ctx, SCMP_FLTATR_CTL_OPTIMIZE, 2), "optimize");
	must(seccomp_attr_set(ctx, SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS), "bad arch");
}

static void
rule(unsigned action, const char *name)
{
	struct numbers *numbers;

	if (!kills && number(name) > newest)
		return;
	must(seccomp_rule_add(ctx, action, number(name), 0), name);
	numbers = action == SCMP_ACT_ALLOW          ? &allowed
		  : action == SCMP_ACT_ERRNO(EPERM) ? &denied
						    : &nosys;
	numbers->v[numbers->n++] = number(name);
}

static void
rule_arg(unsigned action, const char *name, unsigned n, scmp_datum_t mask, scmp_datum_t value)
{
	struct scmp_arg_cmp cmp = SCMP_CMP(n, SCMP_CMP_MASKED_EQ, mask, value);

	must(seccomp_rule_add_array(ctx, action, number(name), 1, &cmp), name);
}

static void
allow_args(const char *name, unsigned n, const unsigned values[3])
{
	struct scmp_arg_cmp cmp[3];

	for (unsigned i = 0; i < n; i++)
		cmp[i] = SCMP_CMP(i, SCMP_CMP_MASKED_EQ, 0xffffffffull, values[i]);
	must(seccomp_rule_add_array(ctx, SCMP_ACT_ALLOW, number(name), n, cmp), name);
}

static void
allow_vdso(void)
{
	static const char *const calls[] = { "clock_getres", "clock_gettime", "getcpu",
		"gettimeofday", "time" };

	for (size_t i = 0; i < sizeof calls / sizeof calls[0]; i++)
		rule(SCMP_ACT_ALLOW, calls[i]);
}

static void
print_numbers(const char *name, const char *kind, const struct numbers *numbers)
{
	printf("__attribute__((unused)) static const int %s_%s[] = {", name, kind);
	for (int i = 0; i < numbers->n; i++)
		printf(" %d,", numbers->v[i]);
	printf(" -1 };\n");
}

#ifdef FILTER_SANITIZED
static bool
is_listed(int nr)
{
	const struct numbers *all[] = { &allowed, &denied, &nosys };

	for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
		for (int k = 0; k < all[i]->n; k++)
			if (all[i]->v[k] == nr)
				return true;
	return false;
}

/* Allows the calls of the sanitizers' run time in builds with sanitizers: memory, its report, the
 * end. */
static void
allow_sanitizers(void)
{
	static const char *const calls[] = { "brk", "clock_gettime", "close", "exit_group", "fstat",
		"futex", "getpid", "getrlimit", "gettid", "getuid", "lseek", "madvise", "mmap",
		"mprotect", "mremap", "munmap", "newfstatat", "open", "openat", "pipe", "pipe2",
		"prlimit64", "read", "readlink", "rt_sigaction", "rt_sigprocmask", "sched_yield",
		"sigaltstack", "write" };

	for (size_t i = 0; kills && i < sizeof calls / sizeof calls[0]; i++)
		if (!is_listed(number(calls[i])))
			rule(SCMP_ACT_ALLOW, calls[i]);
}
#endif

static void
print_insn(struct sock_filter insn)
{
	printf("\t{ 0x%04x, %u, %u, 0x%08x },\n", insn.code, insn.jt, insn.jf, insn.k);
}

/* Prints the check that precedes the library's own: numbers above newest give ENOSYS. Numbers of
 * another architecture, and of x32, which have a bit of their own, are left to the library's check.
 * Returns the number of instructions. */
static size_t
print_newer(void)
{
	const struct sock_filter newer[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, arch)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, seccomp_arch_native(), 0, 4),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JGT | BPF_K, (unsigned)newest, 0, 2),
		BPF_JUMP(BPF_JMP | BPF_JGE | BPF_K, X32_BIT, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
	};

	for (size_t i = 0; i < sizeof newer / sizeof newer[0]; i++)
		print_insn(newer[i]);
	return sizeof newer / sizeof newer[0];
}

int
main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "filter";
	struct sock_filter insn;
	size_t n = 0;
	FILE *tmp;

#define DEFAULT(action) start(DEFAULT_##action);
#define DEFAULT_KILL    SCMP_ACT_KILL_PROCESS
#define DEFAULT_ALLOW   SCMP_ACT_ALLOW
#define ALLOW(call)     rule(SCMP_ACT_ALLOW, #call);
#define ALLOW_ARG(call, arg, value)                                                                \
	rule_arg(SCMP_ACT_ALLOW, #call, arg, 0xffffffffull, (unsigned)(value));
#define ALLOW_ARGS(call, ...)                                                                      \
	allow_args(#call, sizeof((unsigned[]){ __VA_ARGS__ }) / sizeof(unsigned),                  \
	    (const unsigned[3]){ __VA_ARGS__ });
#define ALLOW_ARG_MASK(call, arg, mask, value) rule_arg(SCMP_ACT_ALLOW, #call, arg, mask, value);
#define DENY(call)                             rule(SCMP_ACT_ERRNO(EPERM), #call);
#define DENY_ARG_MASK(call, arg, mask, value)                                                      \
	rule_arg(SCMP_ACT_ERRNO(EPERM), #call, arg, mask, value);
#define NOSYS(call) rule(SCMP_ACT_ERRNO(ENOSYS), #call);
#define VDSO        allow_vdso();
#include FILTER_DEF
#ifdef FILTER_SANITIZED
	allow_sanitizers();
#endif

	tmp = tmpfile();
	if (!tmp)
		must(-errno, "tmpfile");
	must(seccomp_export_bpf(ctx, fileno(tmp)), "export");
	rewind(tmp);
	printf(
	    "/* Made by tools/filter_gen from " FILTER_DEF ". */\n#include <linux/filter.h>\n\n");
	print_numbers(name, "allowed", &allowed);
	print_numbers(name, "denied", &denied);
	print_numbers(name, "nosys", &nosys);
	printf("__attribute__((unused)) static const int %s_kills = %d;\n", name, kills);
	printf("__attribute__((unused)) static const int %s_newest = %d;\n\n", name, newest);
	printf("static const struct sock_filter %s_insns[] = {\n", name);
	if (!kills)
		n = print_newer();
	for (; fread(&insn, sizeof insn, 1, tmp) == 1; n++)
		print_insn(insn);
	printf("};\n\nstatic const struct sock_fprog %s_prog = {\n\t.len = %zu,\n"
	       "\t.filter = (struct sock_filter *)(unsigned long)%s_insns,\n};\n",
	    name, n, name);
	return 0;
}
