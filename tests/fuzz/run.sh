#!/bin/bash
# Fuzzes the code that reads bytes from peers and from a server's files. Builds each target with clang, libFuzzer, ASan and
# UBSan, and runs each target on RUNS inputs (default: 1,000,000). A target ends earlier after SECONDS (default: no limit).
# Requires clang++. The ordinary test payload_input_test makes the same checks of payloads on the seed inputs without clang.
#
#   tests/fuzz/run.sh [RUNS [SECONDS]]
set -euo pipefail
cd "$(dirname "$0")/../.."
runs=${1:-1000000}
seconds=${2:-0}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
clang=${CLANGXX:-$(command -v clang++ || command -v clang++-14)}
# Compiles the kernels for one SIMD instruction set only. Fuzzing the others is unnecessary, because the tests of the
# kernels check that all instruction sets give equal results.
flags=(-std=c++20 -O1 -g -I. -fsanitize=address,undefined -fno-sanitize-recover=all
  -ffp-contract=off -DHWY_COMPILE_ONLY_STATIC)
libs=($(pkg-config --libs absl_statusor absl_strings absl_status absl_str_format absl_synchronization absl_flat_hash_set protobuf)
  -lhwy -lisal -lglog)

# object SOURCE...: compiles each source with instrumentation and adds it to `objects`.
objects=()
object() {
  for source in "$@"; do
    objects+=("$work/${source//\//_}.o")
    "$clang" "${flags[@]}" -fsanitize=fuzzer-no-link -c "$source" -o "${objects[-1]}"
  done
}

# fuzz NAME MAX_LENGTH SOURCE [FLAG...]: builds and runs one target.
fuzz() {
  "$clang" "${flags[@]}" "${@:4}" -fsanitize=fuzzer "$3" "${objects[@]}" "${libs[@]}" \
    -o "$work/fuzz"
  mkdir -p "$work/seeds/$1"
  "$work/fuzz" -runs="$runs" -max_total_time="$seconds" -max_len="$2" -seed=1 -print_final_stats=1 "$work/seeds/$1" \
    2> "$work/log" || { cat "$work/log"; exit 1; }
  echo "fuzz $1 $(grep 'DONE' "$work/log" | tr -s '\t ' ' ')"
}

object $(ls common/memory/byte_chain.cc common/text/problems.cc common/codec/*.cc common/codec/*/*.cc kernels/*.cc kernels/select/*.cc tests/fuzz/payload_input.cc |
  grep -v -e _test.cc -e codec/error_feedback -e kernels/differ)
"$clang" "${flags[@]}" -fsanitize=fuzzer-no-link tests/fuzz/write_seeds.cc "${objects[@]}" \
  "${libs[@]}" -o "$work/write_seeds"
number=0
for family in $("$work/write_seeds" "$work/seeds"); do
  fuzz "$family" 1200 tests/fuzz/payload_fuzz.cc -DTHINWIRE_FUZZ_FAMILY=$number
  number=$((number + 1))
done
fuzz ulp_delta 600 tests/fuzz/ulp_delta_fuzz.cc
object proto/frame.cc proto/wire_format.cc
fuzz frame 600 proto/frame_fuzz.cc
mkdir -p "$work/proto_cc"
protoc -I. --cpp_out="$work/proto_cc" proto/{state,checkpoint,control,job}.proto
flags+=(-I"$work/proto_cc")
object common/files/crc32c.cc common/files/atomic_file.cc common/time/trace.cc server/durable/event_log.cc server/durable/log_format.cc server/durable/testing/faulty_files.cc
fuzz log_segment 400 tests/fuzz/log_segment_fuzz.cc
object "$work"/proto_cc/proto/*.pb.cc common/spec/rule.cc proto/deal_check.cc proto/parsed_bytes.cc server/durable/log_record.cc
fuzz log_record 600 tests/fuzz/log_record_fuzz.cc
object common/memory/array_bytes.cc common/files/safetensors.cc server/durable/checkpoint_format.cc
mkdir -p "$work/seeds/checkpoint"
printf '\0{"format": 1, "join": {"job": "j", "config": {"workers": 2}}, "shards": [{"shard": 1, "workers": [{"next": "2",
  "last_push_step": "1", "last_push_verdict": 1, "waiting": {"step": "2", "read_codec": 1}}]}]' \
  > "$work/seeds/checkpoint/manifest"
header='{"masters":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"slot_0":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}}'
printf "\\1\\x$(printf %x ${#header})\\0\\0\\0\\0\\0\\0\\0%s12345678" "$header" > "$work/seeds/checkpoint/shard"
fuzz checkpoint 4000 tests/fuzz/checkpoint_fuzz.cc
object $(ls common/partition.cc common/density_warmup.cc common/repeatable_math.cc common/text/did_you_mean.cc common/text/quoted.cc common/files/file_kind.cc common/spec/*.cc \
  config/{applicability,fields,job,job_difference,job_text,message_text,places,stability}.cc | grep -v -e _test.cc -e spec/rule.cc)
mkdir -p "$work/seeds/job_file" "$work/seeds/control"
cp examples/*.textproto "$work/seeds/job_file"
fuzz job_file 3000 tests/fuzz/job_file_fuzz.cc
(printf '\0'; protoc -I. --encode=thinwire.JoinRequest proto/control.proto <<< 'job: "j" worker: 1 servers: 2 tensors { name: "w" shape: 3 }
  config { name: "j" task { epochs: 2 } }') > "$work/seeds/control/join"
(printf '\1'; protoc -I. --encode=thinwire.Deal proto/control.proto <<< 'step: 9 members: 0 members: 2 departed { worker: 1 next: 7 }') \
  > "$work/seeds/control/deal"
fuzz control 600 tests/fuzz/control_fuzz.cc
