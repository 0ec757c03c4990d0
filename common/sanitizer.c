// SPDX-License-Identifier: Apache-2.0
/* sanitizer.c: how a build with sanitizers (make SAN=1) behaves by default. Runs in: every process
 * of such a build. */
#ifdef __SANITIZE_ADDRESS__
const char *__asan_default_options(void);

/* The search for leaks at the end traces the process from another one, which no filter here allows;
 * tests turn it on. */
const char *
__asan_default_options(void)
{
	return "detect_leaks=0";
}
#else
typedef int sanitizer_is_empty;
#endif
