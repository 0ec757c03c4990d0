// SPDX-License-Identifier: Apache-2.0
/* cli_terminal.c: the operator's terminal while it is connected to a remote command. Runs in: cli.
 */
#include "cli/cli_terminal.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "common/cleanup.h"
#include "common/mem.h"

static struct termios before;
static volatile sig_atomic_t is_raw;

void
cli_terminal_restore(void)
{
	if (!is_raw)
		return;
	is_raw = 0;
	(void)tcsetattr(STDIN_FILENO, TCSADRAIN, &before);
}

/* Restores the terminal, then dies of the same signal. */
static void
on_signal(int signo)
{
	cli_terminal_restore();
	(void)signal(signo, SIG_DFL);
	(void)raise(signo);
}

int
cli_terminal_raw(struct err *e)
{
	static const int ends[] = { SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGABRT,
		SIGSEGV, SIGBUS, SIGXCPU, SIGUSR1, SIGUSR2 };
	const struct sigaction action = { .sa_handler = on_signal };
	struct termios raw;

	if (tcgetattr(STDIN_FILENO, &before) < 0)
		return errno == ENOTTY ? 0 : err_set(e, -errno, "read the terminal's settings");
	if (atexit(cli_terminal_restore) != 0)
		mem_exhausted();
	for (size_t i = 0; i < ELEMENTSOF(ends); i++)
		(void)sigaction(ends[i], &action, NULL);
	raw = before;
	cfmakeraw(&raw);
	is_raw = 1;
	if (tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) < 0)
		return err_set(e, -errno, "set the terminal");
	return 0;
}

bool
cli_terminal_size(unsigned *ret_rows, unsigned *ret_columns)
{
	struct winsize size;

	if (ioctl(STDIN_FILENO, TIOCGWINSZ, &size) < 0 &&
	    ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) < 0)
		return false;
	*ret_rows = size.ws_row;
	*ret_columns = size.ws_col;
	return true;
}

long
cli_escape_filter(struct cli_escape *s, const char *in, size_t len, char *out)
{
	long n = 0;

	for (size_t i = 0; i < len; i++) {
		if (s->pending) {
			s->pending = false;
			if (in[i] == '.')
				return -1;
			out[n++] = s->c;
			s->in_line = true;
			if (in[i] == s->c)
				continue;
		} else if (s->c && !s->in_line && in[i] == s->c) {
			s->pending = true;
			continue;
		}
		out[n++] = in[i];
		s->in_line = in[i] != '\r' && in[i] != '\n';
	}
	return n;
}
