#!/bin/bash
# Measures the cost of one slow worker. Runs the same job in mode sync and in mode backup, each without and with a
# straggler. Prints a table and, for both modes, the median step duration with the straggler divided by the median step
# duration without the straggler.
#
#   bench/straggler.sh                                   all four runs, about two minutes
#   bench/straggler.sh --delay 500ms --train_examples 6000 --json DIR
#
# Every worker sleeps for --pace in each step, as if it waited for its own GPU. The workers then hardly compete for the
# cores of this machine, and the median step is determined by the slowest worker that the mode waits for. The straggler
# is the last worker; it sleeps for --pace plus --delay.
#
# The programs come from bazel-bin (or --bin_dir). The exit code is 1 if a run fails.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
config=$root/examples/fashion_mnist_softmax.textproto
workers=5
servers=2
batch_size=32
epochs=1
train_examples=20000
pace=40ms
delay=200ms
rate=0.02
json=""

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "straggler.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --config) config=$2 ;;
    --workers) workers=$2 ;;
    --servers) servers=$2 ;;
    --batch_size) batch_size=$2 ;;
    --epochs) epochs=$2 ;;
    --train_examples) train_examples=$2 ;;
    --pace) pace=$2 ;;
    --delay) delay=$2 ;;
    --rate) rate=$2 ;;
    --json) json=$2 ;;
    *) echo "straggler.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

milliseconds() {
  case $1 in
    *[!0-9ms]* | ms) echo "straggler.sh: not a duration (expected milliseconds such as 40ms, got $1)" >&2; exit 64 ;;
    *ms) echo "${1%ms}" ;;
    *) echo "straggler.sh: not a duration (expected milliseconds such as 40ms, got $1)" >&2; exit 64 ;;
  esac
}
pace=$(milliseconds "$pace") && delay=$(milliseconds "$delay") || exit 64

thinwire=$bin_dir/cli/thinwire
[ -x "$thinwire" ] || {
  echo "straggler.sh: $thinwire: not found (build it with: bazel build //cli:thinwire //server //worker)" >&2
  exit 69
}

work=$(mktemp -d)
child=""
trap '[ -z "$child" ] || kill "$child" 2> /dev/null; wait; rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM
reports=${json:-$work}
mkdir -p "$reports" || exit 78

# Trains in MODE; the last worker sleeps DELAY milliseconds longer in each step. Writes the report MODE-DELAY.json.
# Arguments: MODE, DELAY.
train() {
  local mode=$1 extra=$2 flags=() worker
  [ "$mode" = backup ] && flags+=(--backup 1)
  for ((worker = 0; worker < workers - 1; worker++)); do
    flags+=(--straggler "$worker:${pace}ms")
  done
  flags+=(--straggler "$worker:$((pace + extra))ms")
  "$thinwire" train --config "$config" --bin_dir "$bin_dir" --mode "$mode" --workers "$workers" \
    --servers "$servers" --batch_size "$batch_size" --epochs "$epochs" --train_examples "$train_examples" \
    --learning_rate "$rate" --report "$reports/$mode-$extra.json" "${flags[@]}" > /dev/null 2> "$work/log" &
  child=$!
  local failed=0
  wait "$child" || failed=1
  child=""
  [ $failed = 0 ] && return
  echo "straggler.sh: $mode with a straggler of ${extra}ms: failed; the last lines of its log:" >&2
  tail -n 5 "$work/log" >&2
  exit 1
}

echo "load: $(cut -d' ' -f1-3 /proc/loadavg), cores: $(nproc)"
for mode in sync backup; do
  train $mode 0
  train $mode "$delay"
done

python3 - "$reports" "$delay" <<'PYTHON'
import json
import sys

folder, delay = sys.argv[1], int(sys.argv[2])
runs = {}
print("| mode | straggler | median step ms | steps | test accuracy | late pushes | share of all pushes | seconds |")
print("|---|---|---|---|---|---|---|---|")
for mode in ("sync", "backup"):
    for extra in (0, delay):
        with open("%s/%s-%d.json" % (folder, mode, extra)) as f:
            r = json.load(f)
        runs[mode, extra] = r
        pushes = r["accepted_pushes"] + r["late_pushes"]
        print("| %s | %s | %.1f | %d | %.4f | %d | %.1f %% | %.1f |" % (
            mode, "%d ms" % extra if extra else "none", 1e3 * r["median_step_seconds"], r["steps"],
            r["final_test_accuracy"], r["late_pushes"],
            100 * r["late_pushes"] / pushes if pushes else 0, r["seconds"]))
for mode in ("backup", "sync"):
    slow, quick = runs[mode, delay], runs[mode, 0]
    print("ratio straggler.%s_step %.2f" % (mode, slow["median_step_seconds"] / quick["median_step_seconds"]))
slow, quick = runs["backup", delay], runs["backup", 0]
print("difference straggler.backup_accuracy %+.4f" % (slow["final_test_accuracy"] - quick["final_test_accuracy"]))
PYTHON
