#!/usr/bin/env bash
# Builds a bundle: a folder, and the same packed, whose programs run on a machine with a driver, a plain C++ runtime and
# the torch Python package, without Bazel, gRPC, Abseil or Boost. There, run.sh tests and measures the GPU's kernels,
# trains ResNet-20, and prints a table (docs/bundle.md).
#
#   deploy/bundle.sh --torch DIR                  the torch package's folder, of the version that the host has
#   deploy/bundle.sh --torch DIR --out FOLDER     to FOLDER, out/bundle, and FOLDER.tar.xz; an older one is replaced
#   deploy/bundle.sh --torch DIR --limit_mb 60    packed, it must not be larger
#
# The torch package need not be installed: `pip install --no-deps --target DIR torch==2.11.0`, then --torch DIR/torch.
# $BAZEL is the command of Bazel with its startup options, $BAZEL_FLAGS what else its builds are told.
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
  [ $# -ge 2 ] || fail "$1: want a value, got none" 64
  case $1 in
    --torch) torch=$2 ;;
    --out) out=$2 ;;
    --limit_mb) limit_mb=$2 ;;
    *) fail "$1: unknown; --help tells the flags" 64 ;;
  esac
  shift 2
done
[ -n "$torch" ] || fail "want --torch DIR, the folder of a torch package; --help tells how to get one" 64
[ -f "$torch/version.py" ] && [ -d "$torch/include/torch" ] && [ -d "$torch/lib" ] ||
  fail "--torch $torch: want a torch package with version.py, include/torch and lib/"
[[ $limit_mb =~ ^[0-9]+$ ]] || fail "--limit_mb: want a number of megabytes, got $limit_mb" 64
torch=$(readlink -f "$torch")
out=$(readlink -m "$out")
[ ! -e "$out" ] || [ -f "$out/share/requirements" ] ||
  fail "--out $out: want a folder that is not there yet, or an older bundle"
images=/usr/share/datasets/fashion-mnist
[ -d $images ] || fail "want $images, found none; deploy/install_packages.sh installs it"
# Debian's packages of which something travels.
packages=(
  dataset-fashion-mnist libabsl-dev libbenchmark-dev libboost1.74-dev libc-ares-dev libcli11-dev libgflags2.2
  libgoogle-glog0v6 libgrpc-dev libgtest-dev libhwy1 libisal2 liblzma5 libprotobuf-dev libre2-dev libssl-dev libunwind8
  nlohmann-json3-dev zlib1g-dev
)

read -ra bazel <<<"${BAZEL:-bazel}"
read -ra flags <<<"${BAZEL_FLAGS:-}"
flags+=(--config=bundle "--repo_env=THINWIRE_TORCH=$torch")
cd "$root"

# Every target of this name is a program that tests on a GPU.
tests=$("${bazel[@]}" query --noshow_progress 'attr(name, "^gpu_test$", //...)')
[ -n "$tests" ] || fail "want the CUDA toolkit, found none: nothing for a GPU can be built (docs/dependencies.md)"
declare -A programs=(
  [thinwire]=//cli:thinwire [server]=//server:server [worker]=//worker:worker
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
for file in "$root"/configs/fashion_mnist*.textproto "$images"/*.gz; do arguments+=(--share "$file"); done
python3 deploy/bundle/layout.py "${arguments[@]}" --torch_package "$torch"
for package in "${packages[@]}"; do
  install -D -m 644 "/usr/share/doc/$package/copyright" "$out/share/copyright/$package"
done

tar -C "$(dirname "$out")" --sort=name --owner=0 --group=0 --numeric-owner -cf - "$(basename "$out")" |
  xz -9 >"$out.tar.xz"
bytes=$(stat -c %s "$out.tar.xz")
printf '%s: %d.%d MB\n' "$out.tar.xz" $((bytes / 1000000)) $((bytes / 100000 % 10))
[ "$bytes" -le $((limit_mb * 1000000)) ] || fail "$out.tar.xz: want at most $limit_mb MB, got $bytes bytes" 1
