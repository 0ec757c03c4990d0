# SPDX-License-Identifier: Apache-2.0
"""The frame of a test: it has functions test_…(), and `case.run(globals())` at the end of the file."""
import atexit
import contextlib
import os
import shutil
import sys
import tempfile
import time
import traceback


def run(names):
    """Runs each test_…() of the file in its order, also after a failure. Ends the process."""
    failed = 0
    only = sys.argv[1:]
    for name, fn in list(names.items()):
        if not name.startswith("test_") or not callable(fn) or (only and name not in only):
            continue
        began = time.monotonic()
        try:
            fn()
        except SystemExit as e:
            if e.code != 77:
                raise
            print("  %-60s skipped" % name, flush=True)
            continue
        except BaseException:  # also KeyboardInterrupt and SystemExit: the other tests must still be reported
            traceback.print_exc(file=sys.stdout)
            failed += 1
            print("  %-60s FAILED" % name, flush=True)
            continue
        print("  %-60s ok %6.2f s" % (name, time.monotonic() - began), flush=True)
    sys.exit(1 if failed else 0)


def skip(why):
    """Ends the test as skipped, for a machine that cannot run it at all; not for tests that are merely difficult."""
    print("skipped: " + why, flush=True)
    sys.exit(77)


# A deadline only ends the wait for something that hangs; it does not measure a machine's speed. No deadline is shorter than this, whatever a test
# says.
LEAST_S = 90


def patience(seconds):
    """Returns how long to wait for something that takes at most `seconds` on an idle machine."""
    return max(seconds, LEAST_S)


def write(path, text):
    """Writes a file. Returns its path."""
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def until(condition, seconds, what):
    """Waits until condition() is true and returns its value; fails after patience(seconds)."""
    seconds = patience(seconds)
    end = time.monotonic() + seconds
    pause = 0.001
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() >= end:
            raise AssertionError("%s: timed out after %g s" % (what, seconds))
        time.sleep(pause)
        pause = min(0.05, pause * 2)


def equal(found, wanted, what=""):
    if found != wanted:
        raise AssertionError("%s: found %r, wanted %r" % (what or "value", found, wanted))


def contains(text, part, what=""):
    if part not in text:
        raise AssertionError("%s: %r is not in %r" % (what or "text", part, text))


def raises(kind, fn, *args, **kwargs):
    """Returns the exception that fn must raise."""
    try:
        fn(*args, **kwargs)
    except kind as e:
        return e
    raise AssertionError("%s was not raised" % kind.__name__)


_base, _made = None, 0


def directory():
    """Returns a new directory of this test. Its path is short, because the path of a socket below it has at most 108 bytes."""
    global _base, _made
    if _base is None:
        _base = os.environ.get("DROVER_TEST_DIR")
    if _base is None:  # started without tests/run
        _base = tempfile.mkdtemp(prefix="dt-", dir="/var/tmp")
        os.chmod(_base, 0o755)
        atexit.register(shutil.rmtree, _base, ignore_errors=True)
    _made += 1
    path = os.path.join(_base, "d%d" % _made)
    os.mkdir(path, 0o755)
    return path


def pids_with(mark):
    """Returns the processes with this word in their arguments."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        with contextlib.suppress(OSError), open("/proc/%s/cmdline" % pid, "rb") as f:
            if mark.encode() in f.read().split(b"\0"):
                found.append(int(pid))
    return found
