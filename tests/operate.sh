#!/usr/bin/env bash
# The trials of an operator (tests/operate/): real servers and workers on two hosts, which are network namespaces, and the commands of
# a third one. Prints `ok N TITLE` or `FAILED N TITLE` with the reason for each trial. The last line is `N passed, N failed`.
#
#   tests/operate.sh                 all trials
#   tests/operate.sh --only 7,12     these trials
#   tests/operate.sh --list          numbers and titles
#
# Requires root, iproute2, openssl, ssh and sshd, rclone, and bazel build //cli:thinwire //server //worker. Namespaces, processes and
# mounts end with the script, also if it is interrupted. The exit code is 1 if a trial failed.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit

case "${1:-}" in
  "" | --only) ;;
  --list) exec /usr/bin/python3 -m tests.operate --list ;;
  *) echo "operate.sh: $1: unknown flag (expected --only or --list)" >&2; exit 64 ;;
esac
script=operate.sh
prefix=twop-$$
work=""
rate=1gbit
round_trip=0ms
congestion=$(cat /proc/sys/net/ipv4/tcp_congestion_control)
buffer_limits=()
source bench/namespaces.sh

for program in cli/thinwire server/server worker/worker; do
  [ -x "bazel-bin/$program" ] && continue
  echo "operate.sh: bazel-bin/$program: missing (expected the result of: bazel build //cli:thinwire //server //worker)" >&2
  exit 69
done
work=$(mktemp -d)
mkdir "$work/programs"
for program in cli/thinwire server/server worker/worker; do
  ln -s "$(readlink -f "bazel-bin/$program")" "$work/programs/"
done
make_network 3 || exit 69
# In the background, so that a signal ends the script at once. A mount of a trial is in the mount namespace of `ip netns exec`.
(on 3 /usr/bin/python3 -m tests.operate --prefix "$prefix" --programs "$work/programs" --work "$work" "$@") &
wait $!
