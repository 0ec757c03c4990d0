# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall, into a directory."""
import os
import shutil
import subprocess

from lib import ROOT, binary, case
from lib.fake_api import run_command


def make(target, base):
    build = os.path.relpath(os.path.dirname(binary("drover")), ROOT)
    r = subprocess.run(["make", "-C", ROOT, "BUILD=" + build, "DESTDIR=" + base, target], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
    case.equal(r.returncode, 0, r.stdout.decode())
    return r.stdout.decode()


def files(base):
    return sorted(os.path.join(where, name) for where, _, names in os.walk(base) for name in names)


def test_what_is_installed_is_removed_again_and_nothing_else():
    base = case.directory()
    os.makedirs(base + "/usr/bin")
    with open(base + "/usr/bin/other", "w", encoding="utf-8") as f:
        f.write("x")
    case.contains(make("install", base), "Next: systemd-sysusers && systemd-tmpfiles --create")
    case.equal(os.access(base + "/usr/libexec/drover/drover-launcher", os.X_OK), True)
    for path in ("bash-completion/completions/drover", "zsh/vendor-completions/_drover", "fish/vendor_completions.d/drover.fish"):
        case.equal(os.path.isfile(base + "/usr/share/" + path), True, path)
    r = run_command(["config", "validate", base + "/usr/share/doc/drover/drover.hcl"])
    case.equal((r.code, r.err), (0, ""), "the example")
    make("uninstall", base)
    case.equal(files(base), [base + "/usr/bin/other"], "files after make uninstall")


if not shutil.which("make") or not shutil.which("gcc"):
    case.skip("needs make and gcc")
case.run(globals())
