# SPDX-License-Identifier: Apache-2.0
# drover.fish: completion for fish. `drover __complete` prints what can follow.

function __drover_complete
	set -l before (commandline -opc)
	set -l current (commandline -ct)
	for line in ($before[1] __complete $before[2..-1] "$current" 2>/dev/null)
		if test "$line" != ":files"
			printf '%s\n' $line
			continue
		end
		set -l begun (string match -r '^-[^=]*=' -- $current)
		for path in (__fish_complete_path (string sub -s (math (string length -- "$begun") + 1) -- $current))
			printf '%s%s\n' "$begun" $path
		end
	end
end
complete -c drover -f -a '(__drover_complete)'
