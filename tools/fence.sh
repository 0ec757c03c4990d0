#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# fence.sh: checks that calls which drop or change privileges are in five files only, so that a reader knows where to
# look: common/privs.c, the executor's sandbox file, exec-helper's template file, network-helper's namespace file and the launcher (its subreaper line).
set -u
cd "$(dirname "$0")/.."
calls='setres[ug]id|set[ug]id|setre[ug]id|sete[ug]id|setgroups|initgroups|setfs[ug]id|capset|cap_set_[a-z_]+|cap_drop_bound|cap_reset_ambient|prctl|seccomp(_[a-z_]+)?|unshare|setns|chroot'
numbers='SYS_(setres[ug]id|set[ug]id|capset|prctl|seccomp|unshare|setns|chroot)|__NR_(seccomp|prctl|setns|unshare)'
found=$(grep -rnE "(^|[^a-zA-Z0-9_>.\"])($calls)\(|$numbers" --include='*.c' --include='*.cc' --include='*.h' \
	launcher supervisor mount-helper file-helper exec-helper executor csi-helper heartbeat check-helper job-parser fetcher image-fetcher image-unpacker network-helper template-renderer listener holder cli common config model contrib |
	grep -vE '^common/privs\.[ch]:|^executor/exe_sandbox\.c:|^exec-helper/exec_template\.c:|^network-helper/net_namespace\.c:' |
	grep -vE '^launcher/lau_main\.c:[0-9]+:.*prctl\(PR_SET_CHILD_SUBREAPER,' |
	grep -vE '^[^:]+:[0-9]+:[[:space:]]*(/\*|\*|//)')
[ -z "$found" ] && exit 0
echo "$found"
echo "these calls belong into common/privs.c, executor/exe_sandbox.c, exec-helper/exec_template.c or network-helper/net_namespace.c"
exit 1
