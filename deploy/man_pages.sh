#!/usr/bin/env bash
# Writes the manual pages of the programs to a folder: thinwire.1, one thinwire-COMMAND.1 per command, and
# thinwire-server.1 and thinwire-worker.1.
#
#   deploy/man_pages.sh THINWIRE SERVER WORKER FOLDER      the paths of the three programs, and the folder
set -euo pipefail
if [ $# -ne 4 ]; then
  echo "man_pages.sh: wrong arguments (expected THINWIRE SERVER WORKER FOLDER, got $# words)" >&2
  exit 64
fi
thinwire=$1 server=$2 worker=$3 folder=$4

mkdir -p "$folder"
"$thinwire" help --man >"$folder/thinwire.1"
# The page names all other pages.
for command in $(sed -n 's/^\.BR thinwire\\-\([a-z0-9]*\) (1).*/\1/p' "$folder/thinwire.1"); do
  "$thinwire" help --man "$command" >"$folder/thinwire-$command.1"
done
"$server" --man >"$folder/thinwire-server.1"
"$worker" --man >"$folder/thinwire-worker.1"
