# SPDX-License-Identifier: Apache-2.0
"""The completion in zsh."""
import shutil

from lib import case
from lib.completion import SCRIPTS, Shell, complete_lines, objects


def test_zsh():
    with objects() as api, Shell(api, "zsh", "-f", "-i") as shell:
        shell.type("PS1='%% '; unset zle_bracketed_paste; print-it() { echo \"<$1>\"; }; fpath=(%s $fpath); autoload -Uz compinit; "
                   "compinit -D -u; echo READY$((1))\r" % SCRIPTS)
        shell.wait("READY1")
        complete_lines(shell)


if not shutil.which("zsh"):
    case.skip("zsh is not installed")
case.run(globals())
