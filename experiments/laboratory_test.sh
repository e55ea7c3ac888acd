#!/usr/bin/env bash
# Runs the laboratory twice, with different numbers of threads, and checks that the tables are identical. Checks its exit
# codes. Argument: the program.
set -euo pipefail
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
# The program finds report.py beside itself.
mkdir "$work/bin"
cp "$1" "$work/bin/laboratory"
ln -s "$PWD/experiments/report" "$work/bin/report"
laboratory=$work/bin/laboratory

fail() { echo "laboratory_test.sh: $1" >&2; exit 1; }

cat >"$work/small.textproto" <<'TEXT'
name: "small"
title: "Small"
job {
  consistency { workers: 4 }
  compression { push: topk density: 0.05 pull: delta }
  task { model: softmax batch_size: 16 train_examples: 640 test_examples: 100 }
}
axis {
  name: "mode"
  setting { name: "sync" }
  setting { name: "async" job { consistency { mode: async } } }
}
axis {
  name: "task"
  setting { name: "softmax" }
  setting { name: "synthetic" machines { synthetic { values: 5000 steps: 10 } } }
}
machines {
  compute { distribution: exponential }
  worker_link { megabits_per_second: 10 latency_ms: 1 }
}
seeds: 2
tests: 3
figure { kind: table }
TEXT

for threads in 1 3; do
  "$laboratory" run "$work/small.textproto" --out "$work/$threads" --threads $threads
  [ "$(wc -l <"$work/$threads/runs.csv")" = 9 ] || fail "wrong number of runs (expected 8 and a header)"
  [ -s "$work/$threads/report.html" ] || fail "no report.html"
done
for table in experiment.json runs.csv curves.csv staleness.csv value_age.csv decisions.csv rule_changes.csv; do
  cmp "$work/1/$table" "$work/3/$table" || fail "$table depends on the number of threads"
done
grep -q '^0,sync,softmax,1,' "$work/1/runs.csv" || fail "runs.csv: no run of sync and softmax with seed 1"
[ "$(cut -d, -f17 "$work/1/runs.csv" | sort -u | wc -l)" = 9 ] || fail "two runs have the same parameters"

# A second run uses the stored results, so the files of the results stay as they are.
before=$(stat -c '%n %Y %i' "$work"/1/runs/* | md5sum)
"$laboratory" run "$work/small.textproto" --out "$work/1" 2>"$work/messages"
[ "$before" = "$(stat -c '%n %Y %i' "$work"/1/runs/* | md5sum)" ] || fail "stored results were computed again"
grep -q 'has the results of 8 of 8 runs' "$work/messages" || fail "no message about the stored results"

expect() {
  local code=$1 text=$2
  shift 2
  local got=0
  "$laboratory" "$@" >"$work/messages" 2>&1 || got=$?
  [ $got = "$code" ] || fail "$*: wrong exit code (expected $code, got $got): $(cat "$work/messages")"
  grep -qF -- "$text" "$work/messages" || fail "$*: no text \"$text\" in $(cat "$work/messages")"
}
expect 64 'FILE is required' run
expect 78 'cannot be read' run "$work/absent.textproto"
expect 78 'setting: unknown (expected sync or async, got "asink"' run "$work/small.textproto" --only mode=asink
expect 78 'has other files' run "$work/small.textproto" --out "$work"
expect 78 'no run is left for --real' run "$work/small.textproto" --out "$work/real" --real
