#!/bin/bash
# Fuzzes the code that reads bytes from peers and from a server's files. Builds the fuzz targets with clang, libFuzzer, ASan
# and UBSan (--config=fuzz in .bazelrc), and runs each target on RUNS inputs (default: 1,000,000). A target ends earlier after
# SECONDS (default: no limit). Requires clang. $BAZEL is the Bazel command with its startup options.
#
#   tests/fuzz/run.sh [RUNS [SECONDS]]
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-1000000}
seconds=${2:-0}
read -ra bazel <<<"${BAZEL:-bazel}"
work=$(mktemp -d)
# Bazel finds the compiler once for each output base. Another output base keeps that of ordinary builds.
bazel+=(--output_base="$work/bazel")
trap '"${bazel[@]}" shutdown; rm -rf "$work"' EXIT

"${bazel[@]}" build --config=fuzz --build_tag_filters=fuzz //tests/fuzz/...
bin=$("${bazel[@]}" info --config=fuzz bazel-bin)/tests/fuzz

# fuzz NAME MAX_LENGTH TARGET: runs one target with the seeds in $work/seeds/NAME.
fuzz() {
  mkdir -p "$work/seeds/$1"
  "$bin/$3" -runs="$runs" -max_total_time="$seconds" -max_len="$2" -seed=1 -print_final_stats=1 "$work/seeds/$1" \
    2> "$work/log" || { cat "$work/log"; exit 1; }
  echo "fuzz $1 $(grep 'DONE' "$work/log" | tr -s '\t ' ' ')"
}

for family in $("$bin/write_seeds" "$work/seeds"); do
  THINWIRE_FUZZ_FAMILY=$family fuzz "$family" 1200 payload_fuzz
done
fuzz ulp_delta 600 ulp_delta_fuzz
fuzz frame 600 frame_fuzz
fuzz log_segment 400 log_segment_fuzz
fuzz log_record 600 log_record_fuzz

mkdir -p "$work/seeds/checkpoint"
printf '\0{"format": 1, "join": {"job": "j", "config": {"workers": 2}}, "shards": [{"shard": 1, "workers": [{"next": "2",
  "last_push_step": "1", "last_push_verdict": 1, "waiting": {"step": "2", "read_codec": 1}}]}]' \
  > "$work/seeds/checkpoint/manifest"
header='{"masters":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"slot_0":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
printf "\\1\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0\\0%s12345678" "$header" > "$work/seeds/checkpoint/shard"
fuzz checkpoint 4000 checkpoint_fuzz

mkdir -p "$work/seeds/job_file" "$work/seeds/control"
cp examples/*.textproto "$work/seeds/job_file"
fuzz job_file 3000 job_file_fuzz
(printf '\0'; protoc -I. --encode=thinwire.JoinRequest proto/control.proto <<< 'job: "j" worker: 1 servers: 2 tensors { name: "w" shape: 3 }
  config { name: "j" task { epochs: 2 } }') > "$work/seeds/control/join"
(printf '\1'; protoc -I. --encode=thinwire.Deal proto/control.proto <<< 'step: 9 members: 0 members: 2 departed { worker: 1 next: 7 }') \
  > "$work/seeds/control/deal"
fuzz control 600 control_fuzz
