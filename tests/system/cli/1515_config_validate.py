# SPDX-License-Identifier: Apache-2.0
"""drover config validate: the same reading of an agent's configuration as the agent's, all problems at once."""
import json
import os
import re

from lib import ROOT, case
from lib.fake_api import run_command


def write(base, name, text):
    path = os.path.join(base, name)
    with open(path, "w", encoding="utf-8") as f:
        f.write(text)
    return path


def validate(*paths):
    return run_command(["config", "validate"] + list(paths))


def test_a_valid_configuration_and_its_warnings():
    base = case.directory()
    path = write(base, "a.hcl", 'server { enabled = true bootstrap_expect = 1 }\nclient { "meta" { a.b = 1, c = 2 } }\n')
    r = validate(path)
    case.equal((r.code, r.out), (0, "The configuration is valid (2 warnings)\n"), r.err)
    case.contains(r.err, "drover: warning: %s:1:10: 'enabled' = true has no effect" % path)
    case.contains(r.err, "drover: warning: %s:1:25: 'bootstrap_expect' has no effect" % path)


def test_every_error_is_shown_with_its_line():
    base = case.directory()
    path = write(base, "a.hcl", 'log_level = "loud"\nclient {\n\tservers = 1\n}\nclinet { }\n')
    r = validate(path)
    case.equal((r.code, r.out), (1, ""))
    case.contains(r.err, path + ":1:13: log_level: expected error, warn, info, debug or trace, found \"loud\"\n  1 | log_level = \"loud\"\n"
                  "    |             ^^^^^^\n")
    case.contains(r.err, path + ":3:12: servers: expected a list of strings, found a number\n  3 |  servers = 1\n    |            ^\n")
    case.contains(r.err, "'clinet' is unknown and has no effect: did you mean \"client\"?")
    case.contains(r.err, "drover: the configuration has 2 errors\n")


def test_files_and_directories_are_merged():
    """A contradiction between two files is an error of the whole; the files of a directory are read in the order of their names."""
    base = case.directory()
    write(base, "20.hcl", 'client { drain_on_shutdown { } }\n')
    case.contains(validate(base).err, "drain_on_shutdown")
    write(base, "10.json", json.dumps({"leave_on_terminate": True}))
    write(base, ".hidden.hcl", "this is not read\n")
    write(base, "other.txt", "this is not read\n")
    r = validate(base)
    case.equal((r.code, r.err), (0, ""))
    other = write(case.directory(), "b.hcl", 'plugin "exec" { config { default_pid_mode = "host" } }\n')
    case.contains(validate(base, other).err, "which needs allow_host_pid = true")


def test_what_cannot_be_read_is_an_error():
    base = case.directory()
    r = validate(base + "/none.hcl")
    case.equal(r.code, 1)
    case.contains(r.err, "No such file")
    case.equal(validate().code, 1)
    # A control character of the file does not reach the terminal.
    r = validate(write(base, "a.hcl", '"a\\u001b[31m" = 1\n\x1b\n'))
    case.equal((r.code, "\x1b" in r.err), (1, False))


def documented():
    """Yields (setting, example, effect) from the tables of docs/configuration.md."""
    with open(os.path.join(ROOT, "docs", "configuration.md"), encoding="utf-8") as f:
        for line in f:
            m = re.match(r"\| `([^`]+)` \| `([^`]+)` \| (works|named|refused) \|", line)
            if m:
                yield m.groups()


def test_each_documented_setting_has_the_documented_effect():
    """An example of each row works without a word, is named in one warning, or is refused."""
    base = case.directory()
    rows = list(documented())
    case.equal(len(rows) > 150, True, "rows")
    for setting, example, effect in rows:
        r = validate(write(base, "a.hcl", example + "\n"))
        if effect == "works":
            case.equal((r.code, r.err), (0, ""), example)
        elif effect == "refused":
            case.equal(r.code, 1, example)
        else:
            case.equal((r.code, r.err.count("\n")), (0, 1), example + ": " + r.err)
            case.contains(r.err, "'%s' " % setting.split(" ")[-1])


case.run(globals())
