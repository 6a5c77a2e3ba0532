#!/usr/bin/env bash
# scripts/environment.sh: what is there is used without a network; what cannot be had is told, with the reason, and told
# apart from what fails. Commands of its own stand in for df, python3 and pip.
#   kept_environment.sh SCRIPTS_FOLDER
set -euo pipefail
# shellcheck source=scripts/environment.sh
. "$1/environment.sh"
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/commands"
why=''
export PATH="$folder/commands:$PATH" PYTHON=python3 FREE=20 REACHED=1 INSTALLS=1
command_of_ours() { # command_of_ours FILE: its lines come from standard input
  { echo '#!/usr/bin/env bash' && cat; } >"$1"
  chmod +x "$1"
}
# shellcheck disable=SC2016  # expanded when it runs
command_of_ours "$folder/commands/df" <<<'echo Avail; echo " ${FREE}G"'
# A virtual environment whose Python runs no code before its pip has installed something.
command_of_ours "$folder/commands/python3" <<'E2'
mkdir -p "$3/bin"
printf '#!/bin/sh\n[ -e "%s/installed" ]\n' "$3" >"$3/bin/python"
printf '#!/bin/sh\necho "pip $*" >>"%s/calls"\n[ "$1" = download ] && { echo no route; exit $((1 - REACHED)); }\n[ "$INSTALLS" = 1 ] && touch "%s/installed"\n' "$3" "$3" >"$3/bin/pip"
chmod +x "$3"/bin/*
E2

failed=0
expect() { # expect CODE REASON FOLDER
  local code=0
  kept_environment "$3" 9 'import something' something >/dev/null || code=$?
  if [ "$code" != "$1" ] || [ "$why" != "$2" ]; then
    echo "answered $code, '$why', expected $1, '$2'" >&2
    failed=1
  fi
}
kept=$folder/cache/kept
FREE=4 expect 1 "$kept would take 9 GB, and 4 GB are free there" "$kept"
REACHED=0 expect 1 'PyPI cannot be reached: no route' "$kept"
INSTALLS=0 expect 2 'something cannot be installed' "$kept"
expect 0 '' "$kept"
rm "$kept/calls"
FREE=0 REACHED=0 expect 0 '' "$kept"
if [ -e "$kept/calls" ]; then echo "pip was called for what is there: $(cat "$kept/calls")" >&2 && failed=1; fi
exit $failed
