#!/usr/bin/env bash
# Installs the missing Debian packages that the build needs. Requires root or sudo, and asks no questions.
set -euo pipefail

packages=(
  bazel-bootstrap g++ git python3 python3-grpcio python3-numpy python3-protobuf
  libgrpc++-dev libgrpc-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libboost-dev libhwy-dev libgoogle-glog-dev libcli11-dev nlohmann-json3-dev libisal-dev zlib1g-dev
  libgtest-dev libgmock-dev libbenchmark-dev prometheus-cpp-dev
  libtorch-dev libopenblas0-pthread
  dataset-fashion-mnist
)

installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
if [ ${#missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: cannot install ${missing[*]} (expected root or sudo, got neither)" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null; then
  echo "install_packages.sh: cannot install ${missing[*]} (expected Debian 12 with apt-get, got no apt-get)" >&2
  exit 1
fi

echo "Installing ${#missing[@]} Debian packages (about a minute): ${missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
install() {
  "${as_root[@]}" apt-get -q update &&
    "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}"
}
if ! install >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install_packages.sh: apt-get failed; its last output lines are above" >&2
  exit 1
fi
