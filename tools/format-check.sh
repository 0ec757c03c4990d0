#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# format-check.sh: prints the C and C++ files that clang-format would change. Exit code 1 if there are any.
set -u
cd "$(dirname "$0")/.."
bad=0
for f in $(find . -path './.git' -prune -o -path './build*' -prune -o \( -name '*.c' -o -name '*.cc' -o -name '*.h' \) -print | LC_ALL=C sort); do
	clang-format "$f" | cmp -s - "$f" && continue
	echo "$f: run clang-format -i on it"
	bad=1
done
exit $bad
