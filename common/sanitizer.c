// SPDX-License-Identifier: Apache-2.0
/* sanitizer.c: how a build with sanitizers (make SAN=1) behaves by default. Runs in: every process
 * of such a build. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);
const char *__ubsan_default_options(void);

/* No filter here allows what these would call: tracing from another process to search for leaks at
 * the end, a program that gives addresses names, and a question whether stderr is a terminal, which
 * would kill the process before it could say what it found. Unit tests, which have no filter, turn
 * the first two on. */
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
