// SPDX-License-Identifier: Apache-2.0
/* sanitizer.c: default options of a build with sanitizers (make SAN=1). Runs in: every process of
 * such a build. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* These options would use system calls that no filter allows: a search for leaks at the end traces
 * the process from another one, symbols for addresses need a program, and the check whether stderr
 * is a terminal would kill the process before it could report its finding. Unit tests, which have
 * no filter, enable the first two. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0:symbolize=0:color=never";
}

const char *
__ubsan_default_options(void)
{
	return "print_stacktrace=1:symbolize=0:color=never";
}
#else
typedef int sanitizer_is_empty;
#endif
