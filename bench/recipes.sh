#!/bin/bash
# Trains the same job with combinations of push and pull compression (recipes), each with several seeds, and prints a
# markdown table: test accuracy (mean and standard deviation), and the compression factor relative to fp32 over the
# whole run and in its last epoch, after any warm-up. The factor counts the bytes of whole messages, which include
# headers, verdicts and densely encoded vectors.
#
#   bench/recipes.sh                                        all recipes, seeds 1 2 3, six epochs, sync
#   bench/recipes.sh --recipes "fp32 topk_001_dgc" --seeds 1
#   bench/recipes.sh --mode async --epochs 2 --train_examples 6000 --json DIR
#
# The programs come from bazel-bin (or --bin_dir). Failed runs appear in the table; the exit code is then 1.
set -u

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }

root=$(cd "$(dirname "$0")/.." && pwd)
bin_dir=$root/bazel-bin
config=$root/examples/fashion_mnist.textproto
recipes="fp32 fp8 fp8_delta topk_01_lazy topk_001_lazy topk_001_dgc gtopk_001_dgc gtopk_001_lazy table_4 table_4_delta table_2
 fp32_slow onebit onebit_delta"
seeds="1 2 3"
mode=sync
workers=4
epochs=6
train_examples=0
model=cnn
json=""
more=""

while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || { echo "recipes.sh: $1: missing value (expected one, got none)" >&2; exit 64; }
  case $1 in
    --bin_dir) bin_dir=$2 ;;
    --config) config=$2 ;;
    --recipes) recipes=$2 ;;
    --seeds) seeds=$2 ;;
    --mode) mode=$2 ;;
    --workers) workers=$2 ;;
    --epochs) epochs=$2 ;;
    --train_examples) train_examples=$2 ;;
    --model) model=$2 ;;
    --json) json=$2 ;;
    --more) more=$2 ;;  # additional flags for every run
    *) echo "recipes.sh: $1: unknown flag (expected one of those that --help lists)" >&2; exit 64 ;;
  esac
  shift 2
done

thinwire=$bin_dir/cli/thinwire
[ -x "$thinwire" ] || { echo "recipes.sh: $thinwire: not found (build it with: bazel build //cli:thinwire //server //worker)" >&2; exit 69; }

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
reports=${json:-$work}
mkdir -p "$reports"

# Flags of all runs. Weight decay is off, because it changes every parameter in every update. With weight decay, the
# deltas of sparse updates would therefore not be small.
shared="--learning_rate 0.05 --weight_decay 0 --schedule cosine --shard_size 262144"
momentum=0.9
case $mode in
  sync) shared+=" --mode sync" ;;
  backup) shared+=" --mode backup --backup 1" ;;
  # ssp and async use a lower momentum, because stale gradients act like additional momentum.
  ssp) shared+=" --mode ssp --slack 4" momentum=0.5 ;;
  async) shared+=" --mode async" momentum=0.5 ;;
  *) echo "recipes.sh: --mode: unknown mode (expected sync, backup, ssp or async, got $mode)" >&2; exit 64 ;;
esac

# Settings of runs with sparse pushes. A residual is applied late and all at once, which acts like additional momentum.
# For a model with batch normalization (resnet20), a momentum of 0.9 is then too high (docs/training.md). The lower
# momentum comes with a higher learning rate, so that the long-term step size, rate / (1 - momentum), is unchanged.
thin="" thin_momentum=$momentum
[ "$model" = resnet20 ] && thin="--learning_rate 0.25" thin_momentum=0.5

recipe_flags() {
  local plain="--momentum $momentum" lazy="--momentum $thin_momentum --lazy_slots"
  local hundredth="--push topk --density 0.01 --topk_values fp8_e5m2 $thin"
  local thousandth="--push topk --density 0.001 --topk_least 32 --topk_values fp8_e5m2 --topk_indices golomb_rice $thin"
  local dgc="--optimizer sgd --momentum_correction --correction_momentum $thin_momentum --density_warmup 0.2"
  case $1 in
    fp32) echo "$plain --push fp32 --pull fp32" ;;
    fp8) echo "$plain --push fp8_e5m2 --pull fp8_e5m2" ;;
    fp8_delta) echo "$plain --push fp8_e5m2 --pull delta_fp8_e5m2" ;;
    topk_01_lazy) echo "$hundredth $lazy --pull delta --density_warmup 0.1" ;;
    topk_001_lazy) echo "$thousandth $lazy --pull delta --density_warmup 0.2" ;;
    topk_001_dgc) echo "$thousandth $dgc --pull delta" ;;
    gtopk_001_dgc) echo "$thousandth $dgc --pull delta --gradient_selection gtopk --selection_density 0.001" ;;
    gtopk_001_lazy) echo "$thousandth $lazy --pull delta --density_warmup 0.2 --gradient_selection gtopk --selection_density 0.001" ;;
    table_4) echo "$plain --push table_4 --pull fp32" ;;
    table_4_delta) echo "$plain --push table_4 --pull delta_table_4" ;;
    table_2) echo "$plain --push table_2 --pull fp32" ;;
    fp32_slow) echo "$plain --push fp32 --pull fp32 --learning_rate 0.02" ;;
    onebit) echo "$plain --push onebit --first_push fp8_e5m2 --first_push_part 0.2 --pull fp32 --learning_rate 0.02" ;;
    onebit_delta) echo "$plain --push onebit --first_push fp8_e5m2 --first_push_part 0.2 --pull delta_onebit --learning_rate 0.02" ;;
    *) echo "recipes.sh: --recipes: unknown recipe (expected one of the default list, got $1)" >&2; exit 64 ;;
  esac
}

# Reads the reports of one recipe and prints its table row. Arguments: recipe, paths of the reports.
row() {
  python3 - "$@" <<'PYTHON'
import json
import statistics
import sys

recipe, paths = sys.argv[1], sys.argv[2:]
reports = []
for path in paths:
    with open(path) as f:
        reports.append(json.load(f))


def saved(raw, wire):
    """Returns the mean compression factors over the whole run and in the last epoch, as two table cells."""
    whole, last = [], []
    for r in reports:
        whole.append(r[raw] / max(r[wire], 1))
        rows = r["epoch_rows"]
        before = rows[-2] if len(rows) > 1 else {raw: 0, wire: 0}
        last.append((rows[-1][raw] - before[raw]) / max(rows[-1][wire] - before[wire], 1))
    return "%.1f | %.1f" % (statistics.mean(whole), statistics.mean(last))


accuracies = [100 * r["final_test_accuracy"] for r in reports]
spread = statistics.stdev(accuracies) if len(accuracies) > 1 else float("nan")
print("| %s | %.2f | %.2f | %s | %s | %.0f |" % (
    recipe, statistics.mean(accuracies), spread, saved("push_bytes_raw", "sent_bytes"),
    saved("pull_bytes_raw", "received_bytes"), statistics.mean(r["seconds"] for r in reports)), flush=True)
PYTHON
}

echo "| recipe | accuracy | deviation | push, times smaller | last epoch | pull, times smaller | last epoch | seconds |"
echo "|---|---|---|---|---|---|---|---|"
failed=0
for recipe in $recipes; do
  flags=$(recipe_flags "$recipe") || exit 64
  done_reports=()
  for seed in $seeds; do
    report=$reports/$mode-$recipe-$seed.json
    # shellcheck disable=SC2086  # splits the flags into words
    if "$thinwire" train --config "$config" --bin_dir "$bin_dir" --workers "$workers" --epochs "$epochs" --model "$model" \
      --train_examples "$train_examples" --seed "$seed" --report "$report" $shared $flags $more \
      > /dev/null 2> "$work/log"; then
      done_reports+=("$report")
    else
      echo "recipes.sh: $recipe, seed $seed: failed; the last lines of its log:" >&2
      tail -n 5 "$work/log" >&2
      failed=1
    fi
  done
  if [ ${#done_reports[@]} -gt 0 ]; then row "$recipe" "${done_reports[@]}"; else echo "| $recipe | failed | | | | | | |"; fi
done
exit $failed
