#!/usr/bin/env bash
# Runs the tests that take too long for test.sh. Prints one line per part at the end, and exits with 1 if a part failed.
#
#   shards     simulated clusters without durability, 4 * SEEDS of each kind     about 7 minutes (estimate)
#   cluster    simulated servers, disks and workers with recovery, SEEDS of each about 9 minutes (estimate)
#   fuzz       every fuzz target, FUZZ_SECONDS each; requires clang++            about 15 minutes
#   server     malformed messages at a live server, SERVER_SECONDS               2 minutes
#   sanitizers the folders that parse bytes of a peer or a user, with the address and the undefined-behaviour sanitizer
#                                                                                many minutes: it builds these folders anew
#   tsan       servers and clients with the thread sanitizer                     many minutes: it builds these folders anew
#   headers    compiles all sources without the precompiled headers, which hide a missing include
#                                                                                about 15 minutes
#   promises   tests/processes/promises_test.cc with long faults                           some minutes
#   times      the times that docs/failures.md promises after a kill, each with five times its tolerance
#                                                                                1 minute
#   chaos      real processes with faults, CHAOS_SECONDS                         3 minutes
#   page       the status pages and a report in headless Chromium; skipped without chromium
#                                                                                1 minute
#   monitoring a real Prometheus with the alert rules and a suspended worker     1 minute
#   deb        the Debian packages in a bare Debian; skipped without mmdebstrap  5 minutes
#   torch      the tests of the Python package with the newest PyTorch of PyPI, 5 GB
#                                                                                5 minutes
#   wheel      the Python wheel in a bare Debian; skipped without mmdebstrap     1 minute
#   image      a server and a worker in containers; skipped without podman, runc 5 minutes
#   podman     the pods of deploy/k8s; skipped without podman or the image       3 minutes
#   walk       the commands of docs/two_machines.md on three bare machines; skipped without root or mmdebstrap
#                                                                                10 minutes
#   operate    what an operator does and must see, on three hosts; skipped without root
#                                                                                8 minutes
#
#   tests/nightly.sh [--seeds 10000] [--fuzz_seconds 60] [--server_seconds 120] [--chaos_seconds 180] [--seed SEED]
#                    [--parts shards,cluster]
#
# A part that lacks a program is skipped. These packages provide the programs of all parts:
#
#   apt-get install clang chromium mmdebstrap lintian podman runc netavark aardvark-dns iptables catatonit
#
# PARTS (default: all) run in the order above. SEED is the first seed of the simulation, the live server and the chaos
# (default: the time in seconds), so each night tests other runs.
set -uo pipefail
cd "$(dirname "$(readlink -f "$0")")/.." || exit

seeds=10000
fuzz_seconds=60
server_seconds=120
chaos_seconds=180
seed=$(date +%s)
names=(shards cluster fuzz server sanitizers tsan headers promises times chaos page monitoring deb torch wheel image podman walk operate)
parts=$(IFS=,; echo "${names[*]}")
while [ $# -gt 0 ]; do
  [ $# -ge 2 ] || { echo "nightly.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --seeds) seeds=$2 ;;
    --fuzz_seconds) fuzz_seconds=$2 ;;
    --server_seconds) server_seconds=$2 ;;
    --chaos_seconds) chaos_seconds=$2 ;;
    --seed) seed=$2 ;;
    --parts) parts=$2 ;;
    *) echo "nightly.sh: $1: unknown flag (expected one of those in the first lines of this file)" >&2; exit 64 ;;
  esac
  shift 2
done
for name in ${parts//,/ }; do
  [[ " ${names[*]} " = *" $name "* ]] && continue
  echo "nightly.sh: --parts: unknown part (expected some of ${names[*]}, got $name)" >&2
  exit 64
done

logs=$(mktemp -d)
results=()
status=0

# part NAME COMMAND...: runs the command if NAME is one of the parts, and adds a line to `results`. The line ends with the
# last line of the output.
part() {
  local name=$1 start=$SECONDS outcome=passed
  shift
  [[ ",$parts," = *",$name,"* ]] || return 0
  echo "nightly: $name: $*"
  if ! "$@" > "$logs/$name" 2>&1; then
    outcome="FAILED, log $logs/$name"
    status=1
    tail -n 40 "$logs/$name"
  fi
  results+=("$name: $outcome, $((SECONDS - start)) s: $(grep -v '^$' "$logs/$name" | tail -n 1)")
}

# installed PROGRAM...: says which program is missing, and fails, if one is.
installed() {
  local program
  for program in "$@"; do
    command -v "$program" > /dev/null && continue
    echo "skipped: $program is not installed"
    return 1
  done
}

shards() {
  bazel run //sim:simulate -- --durability none --seed "$seed" --count $((4 * seeds))
}

cluster() {
  bazel run //sim:simulate -- --seed "$seed" --count "$seeds"
}

fuzz() {
  tests/fuzz/run.sh 1000000000 "$fuzz_seconds" || return 1
  echo "$fuzz_seconds s for each of $(grep -c '^fuzz ' "$logs/fuzz") targets"
}

# .ci/run does the same with common/, kernels/ and server/core/, and with the tests of decoders that build in a few minutes.
sanitizers() {
  local count
  bazel test --keep_going --config=asan --config=ubsan -- //proto/... //config/... //server/... //client/... || return 1
  count=$(grep -cE '^//\S+ +(\(cached\) )?PASSED' "$logs/sanitizers")
  echo "$count test programs"
  [ "$count" -gt 0 ]
}

# absl_mutex_test proves that the sanitizer finds races, and sees the locks of Abseil.
tsan() {
  local count
  bazel test --keep_going --config=tsan -- //third_party/system/tsan:absl_mutex_test //server/shards/... \
    //server/protocols/... //server/job/... //server/rpc/... //server/durable/... //client/... || return 1
  count=$(grep -cE '^//\S+ +(\(cached\) )?PASSED' "$logs/tsan")
  echo "$count test programs"
  [ "$count" -gt 0 ]
}

times() {
  bazel build //server //worker && bench/faults.sh --tolerance 5 || return 1
  sed -n 's/^seconds faults\.\(.*\)/\1 s/p' "$logs/times" | paste -sd, | sed 's/,/, /g'
}

promises() {
  bazel test //tests/processes:promises_test --test_output=all --nocache_test_results --test_timeout=3600 \
    --test_env=THINWIRE_LONG_FAULTS=1 || return 1
  echo "$(grep -c '^\[       OK \]' "$logs/promises") cases with long faults"
}

page() {
  installed chromium || return 0
  bazel run //tests/admin:page_test && bazel run //experiments/report:browser_test || return 1
  echo "$(awk '/^Ran [0-9]+ test/ { sum += $2 } END { print sum + 0 }' "$logs/page") cases"
}

monitoring() {
  bazel run //tests/admin:prometheus_test || return 1
  grep '^fired and resolved: ' < "$logs/monitoring" | cat  # grep refuses to write to its input
}

deb() {
  installed mmdebstrap || return 0
  tests/deb_test.sh
}

wheel() {
  installed mmdebstrap || return 0
  tests/wheel_test.sh
}

image() {
  installed mmdebstrap podman runc || return 0
  tests/image_test.sh
}

walk() {
  if [ "$(id -u)" -ne 0 ] || ! command -v mmdebstrap > /dev/null; then
    echo "skipped: no root, or mmdebstrap is not installed"
    return 0
  fi
  tests/walk.sh
}

operate() {
  if [ "$(id -u)" -ne 0 ]; then
    echo "skipped: no root"
    return 0
  fi
  bazel build //cli:thinwire //server //worker && tests/operate.sh
}

part shards shards
part cluster cluster
part fuzz fuzz
part server bazel run //tests/fuzz:live_server -- --seconds "$server_seconds" --seed "$seed"
part sanitizers sanitizers
part tsan tsan
part headers bazel build --config=plain_headers --symlink_prefix=/ --noshow_progress //...
part promises promises
part times times
part chaos bazel run //tests:chaos -- --seconds "$chaos_seconds" --seed "$seed" --kill_servers
part page page
part monitoring monitoring
part deb deb
part torch tests/newest_torch.sh
part wheel wheel
part image image
part podman bazel run //tests/k8s:podman_run
part walk walk
part operate operate
echo
printf '%s\n' "${results[@]}"
[ $status -ne 0 ] || rm -rf "$logs"
exit $status
