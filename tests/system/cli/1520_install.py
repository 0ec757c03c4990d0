# SPDX-License-Identifier: Apache-2.0
"""make install and make uninstall, into a directory."""
import os
import re
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
    case.equal([f[len(base):] for f in files(base) if "/man/" in f],
               ["/usr/share/man/" + f for f in ("man1/drover.1", "man5/drover-config.5", "man5/drover-job.5")], "manual pages")
    r = run_command(["config", "validate", base + "/usr/share/doc/drover/drover.hcl"])
    case.equal((r.code, r.err), (0, ""), "the example")
    make("uninstall", base)
    case.equal(files(base), [base + "/usr/bin/other"], "files after make uninstall")


def test_the_manual_pages_are_rendered_without_warnings():
    base = case.directory()
    make("install", base)
    for page in ("man1/drover.1", "man5/drover-config.5", "man5/drover-job.5"):
        path = base + "/usr/share/man/" + page
        with open(path, encoding="utf-8") as f:
            case.equal([line for line in f if line.startswith("@")], [], page)
        for tool in (["mandoc", "-Tlint", "-Wwarning"], ["groff", "-mdoc", "-ww", "-z"]):
            if shutil.which(tool[0]):
                r = subprocess.run(tool + [path], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)
                case.equal(r.stdout.decode(), "", "%s %s" % (" ".join(tool), page))


def test_the_pages_of_section_5_have_every_setting_and_every_block():
    base = case.directory()
    make("install", base)
    pages = {}
    for name in ("config", "job"):
        with open("%s/usr/share/man/man5/drover-%s.5" % (base, name), encoding="utf-8") as f:
            pages[name] = f.read()
    with open(ROOT + "/docs/configuration.md", encoding="utf-8") as f:
        settings = re.findall(r"^\| `([^`]+)` \|", f.read(), re.M)
    listed = [name for line in re.findall(r"^\.It Ic (.*)", pages["config"], re.M) for name in line.split(" , ")]
    case.equal(sorted(set(settings) - set(listed)), [], "settings")
    for block in ("job", "group \\(dqNAME\\(dq", "task \\(dqNAME\\(dq", "resources", "check", "update"):
        case.contains(pages["job"], "\n.Ss %s\n" % block)
    case.contains(pages["job"], ".It Ic max_parallel\nnumber\n")


if not shutil.which("make") or not shutil.which("gcc"):
    case.skip("needs make and gcc")
case.run(globals())
