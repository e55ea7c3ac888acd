#!/bin/bash
# Trains the same job in every mode with every push codec, one run after another, and prints a markdown table of test
# accuracy and pushed bytes. All runs train for the same number of epochs. Each mode uses its own learning rate, which
# the table shows.
#
#   bench/modes.sh                                       all modes and codecs
#   bench/modes.sh --modes "sync async" --codecs "fp32 topk" --epochs 1
#   bench/modes.sh --train_examples 6000 --json DIR      faster; keeps the reports in DIR
#
# The programs come from bazel-bin (or --bin_dir). Failed runs appear in the table; the exit code is then 1.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
config=$root/examples/fashion_mnist.textproto
modes="sync backup ssp async"
codecs="fp32 fp16 bf16 fp8_e5m2 fp8_e4m3 topk"
workers=4
epochs=2
train_examples=0
json=""
rate_sync=0.06
rate_backup=0.06
rate_ssp=0.04
rate_async=0.04
# Stale gradients act like additional momentum (Mitliagkas et al. 2016, "Asynchrony begets momentum"). With four workers
# and a momentum of 0.9 at the servers an asynchronous run may diverge; ssp and async therefore use a lower momentum.
momentum_ssp=0.5
momentum_async=0.5
# Settings of topk pushes in sync and backup. Every update applies the optimizer's momentum to all parameters, also to
# those for which the update's sparse gradients contain no value. Old gradients thus continue to change such a
# parameter. This acts like additional momentum, so these runs use a lower momentum, too.
rate_topk=0.15
momentum_topk=0.5

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "modes.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --config) config=$2 ;;
    --modes) modes=$2 ;;
    --codecs) codecs=$2 ;;
    --workers) workers=$2 ;;
    --epochs) epochs=$2 ;;
    --train_examples) train_examples=$2 ;;
    --json) json=$2 ;;
    --rate_sync) rate_sync=$2 ;;
    --rate_backup) rate_backup=$2 ;;
    --rate_ssp) rate_ssp=$2 ;;
    --rate_async) rate_async=$2 ;;
    --momentum_ssp) momentum_ssp=$2 ;;
    --momentum_async) momentum_async=$2 ;;
    --rate_topk) rate_topk=$2 ;;
    --momentum_topk) momentum_topk=$2 ;;
    *) echo "modes.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

thinwire=$bin_dir/cli/thinwire
[ -x "$thinwire" ] || { echo "modes.sh: $thinwire: not found (build it with: bazel build //cli:thinwire //server //worker)" >&2; exit 69; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
reports=${json:-$work}
mkdir -p "$reports"

# Prints the flags of a run. Arguments: mode, codec.
mode_flags() {
  case $1/$2 in
    sync/topk) echo "--mode sync --momentum $momentum_topk --learning_rate $rate_topk"; return ;;
    backup/topk) echo "--mode backup --backup 1 --momentum $momentum_topk --learning_rate $rate_topk"; return ;;
  esac
  case $1 in
    sync) echo "--mode sync --learning_rate $rate_sync" ;;
    backup) echo "--mode backup --backup 1 --learning_rate $rate_backup" ;;
    ssp) echo "--mode ssp --slack 4 --momentum $momentum_ssp --learning_rate $rate_ssp" ;;
    async) echo "--mode async --momentum $momentum_async --learning_rate $rate_async" ;;
    *) echo "modes.sh: --modes: unknown mode (expected sync, backup, ssp or async, got $1)" >&2; exit 64 ;;
  esac
}

# Reads a report and prints its table row. Arguments: mode, codec, path of the report.
row() {
  python3 - "$@" <<'PYTHON'
import json
import sys

mode, codec, path = sys.argv[1:4]
with open(path) as f:
    r = json.load(f)
accuracy = r["final_test_accuracy"]
raw, encoded = r["push_bytes_raw"], r["push_bytes_encoded"]
staleness = r["staleness"] or {"mean": float("nan")}
print("| %s | %s | %g, %g | %s | %.1f | %.1f | %.1f | %.2f | %d | %.1f |" % (
    mode, codec, r["config"]["optimization"]["learning_rate"],
    r["config"]["optimization"]["momentum"],
    "-" if accuracy is None else "%.4f" % accuracy,
    encoded / 1e6, raw / encoded if encoded else 0, r["pull_bytes_encoded"] / 1e6,
    staleness["mean"], r["late_pushes"], r["seconds"]))
PYTHON
}

echo "| mode | push | rate, momentum | test accuracy | pushed MB | times smaller than fp32 | pulled MB | staleness | late pushes | seconds |"
echo "|---|---|---|---|---|---|---|---|---|---|"
failed=0
for mode in $modes; do
  for codec in $codecs; do
    flags=$(mode_flags "$mode" "$codec") || exit 64
    [ "$codec" = topk ] && flags+=" --density 0.01"
    report=$reports/$mode-$codec.json
    # shellcheck disable=SC2086  # splits $flags into words
    if "$thinwire" train --config "$config" --bin_dir "$bin_dir" --workers "$workers" --epochs "$epochs" \
      --train_examples "$train_examples" --push "$codec" --report "$report" $flags \
      > /dev/null 2> "$work/log"; then
      row "$mode" "$codec" "$report"
    else
      echo "| $mode | $codec | failed | | | | | | | |"
      tail -n 5 "$work/log" >&2
      failed=1
    fi
  done
done
exit $failed
