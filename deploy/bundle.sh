#!/usr/bin/env bash
# Builds a bundle: a folder with programs, and an archive of the folder. The programs run on a host, a machine with a
# GPU driver, the C++ runtime and the torch Python package, without Bazel, gRPC, Abseil or Boost. On the host, run.sh
# tests and measures the GPU kernels, trains ResNet-20 and prints a table (docs/bundle.md).
#
#   deploy/bundle.sh --torch DIR                  DIR is the folder of the torch package in the host's version
#   deploy/bundle.sh --torch DIR --out FOLDER     writes FOLDER (default out/bundle) and FOLDER.tar.xz, replacing both
#   deploy/bundle.sh --torch DIR --limit_mb 60    fails if the archive is larger
#
# The torch package need not be installed: run `pip install --no-deps --target DIR torch==2.11.0`, then pass --torch
# DIR/torch. $BAZEL is the Bazel command with its startup options, $BAZEL_FLAGS are additional build flags.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
fail() { echo "bundle.sh: $1" >&2; exit "${2:-69}"; }

torch=""
out=$root/out/bundle
limit_mb=60
while [ $# -gt 0 ]; do
  case $1 in
    --help | -h) usage; exit 0 ;;
  esac
  [ $# -ge 2 ] || fail "$1: missing value (expected one, got none)" 64
  case $1 in
    --torch) torch=$2 ;;
    --out) out=$2 ;;
    --limit_mb) limit_mb=$2 ;;
    *) fail "$1: unknown flag (expected --torch, --out or --limit_mb)" 64 ;;
  esac
  shift 2
done
[ -n "$torch" ] || fail "--torch: missing (expected the folder of a torch package, got none; --help says how to get one)" 64
[ -f "$torch/version.py" ] && [ -d "$torch/include/torch" ] && [ -d "$torch/lib" ] ||
  fail "--torch: not a torch package (expected a folder with version.py, include/torch and lib/, got $torch)"
[[ $limit_mb =~ ^[0-9]+$ ]] || fail "--limit_mb: not a number (expected megabytes, got $limit_mb)" 64
torch=$(readlink -f "$torch")
out=$(readlink -m "$out")
[ ! -e "$out" ] || [ -f "$out/share/requirements" ] ||
  fail "--out: folder exists (expected a new folder or an older bundle, got $out)"
images=/usr/share/datasets/fashion-mnist
[ -d $images ] || fail "$images: not found (deploy/install_packages.sh installs it)"
# Debian packages whose files or code the bundle contains. The bundle includes their copyright notices.
packages=(
  dataset-fashion-mnist libabsl-dev libbenchmark-dev libboost1.74-dev libc-ares-dev libcap2 libcli11-dev libgcrypt20
  libgflags2.2 libgoogle-glog0v6 libgpg-error0 libgrpc-dev libgtest-dev libhwy1 libisal2 liblz4-1 liblzma5 libprotobuf-dev
  libprometheus-cpp-core1.0 libre2-dev libssl-dev libsystemd0 libunwind8 libzstd1 nlohmann-json3-dev zlib1g-dev
)

read -ra bazel <<<"${BAZEL:-bazel}"
read -ra flags <<<"${BAZEL_FLAGS:-}"
flags+=(--config=bundle "--repo_env=THINWIRE_TORCH=$torch")
cd "$root"

# Every target named gpu_test is a test program that runs on a GPU.
tests=$("${bazel[@]}" query --noshow_progress 'attr(name, "^gpu_test$", //...)')
[ -n "$tests" ] || fail "no target for a GPU (expected the CUDA toolkit, got none; docs/dependencies.md)"
declare -A programs=(
  [thinwire]=//cli:thinwire [server]=//server:server [worker]=//worker:worker [laboratory]=//experiments:laboratory
  [bench_gpu]=//bench/gpu:gpu [bench_codec]=//bench:codec
)
for test in $tests; do
  package=${test#//}
  package=${package%:*}
  programs[${package//\//_}_gpu_test]=$test
done
"${bazel[@]}" build "${flags[@]}" "${programs[@]}"
bin=$("${bazel[@]}" info "${flags[@]}" bazel-bin 2>/dev/null)

rm -rf "$out" "$out.tar.xz"
arguments=(--out "$out" --revision "$(git describe --always --dirty 2>/dev/null || echo unknown)")
for name in "${!programs[@]}"; do
  label=${programs[$name]#//}
  arguments+=(--program "$name=$bin/${label/://}")
done
for file in "$root"/examples/fashion_mnist*.textproto "$images"/*.gz; do arguments+=(--share "$file"); done
python3 deploy/bundle/layout.py "${arguments[@]}" --torch_package "$torch"
install -D -m 644 -t "$out/share/experiments" experiments/*.textproto
install -D -m 644 -t "$out/share/thinwire/report" experiments/report/*.py
for package in "${packages[@]}"; do
  install -D -m 644 "/usr/share/doc/$package/copyright" "$out/share/copyright/$package"
done

tar -C "$(dirname "$out")" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$(basename "$out")" |
  xz -9 >"$out.tar.xz"
bytes=$(stat -c %s "$out.tar.xz")
printf '%s: %d.%d MB\n' "$out.tar.xz" $((bytes / 1000000)) $((bytes / 100000 % 10))
[ "$bytes" -le $((limit_mb * 1000000)) ] || fail "$out.tar.xz: too large (expected at most $limit_mb MB, got $bytes bytes)" 1
