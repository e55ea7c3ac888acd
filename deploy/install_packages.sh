#!/usr/bin/env bash
# Installs the missing packages that the build and the tests need. Requires root or sudo, and asks no questions.
set -euo pipefail

packages=(
  bazel-bootstrap g++ git python3 python3-grpcio python3-numpy python3-protobuf
  libgrpc++-dev libgrpc-dev libprotobuf-dev protobuf-compiler protobuf-compiler-grpc libabsl-dev
  libboost-dev libhwy-dev libgoogle-glog-dev libcli11-dev nlohmann-json3-dev libisal-dev zlib1g-dev libssl-dev
  libgtest-dev libgmock-dev libbenchmark-dev prometheus-cpp-dev
  libtorch-dev libopenblas0-pthread
  libsystemd-dev systemd dpkg-dev
  dataset-fashion-mnist
  python3-dev python3-absl python3-torch python3-pip python3-yaml prometheus
  openssh-client openssh-server openssl zsh fish mandoc
  python3-jsonschema
  rclone python3-boto3 python3-flask python3-flask-cors python3-responses python3-xmltodict python3-cryptography
  python3-matplotlib
  mypy
)
# Python packages that Debian does not have. The Python package needs nanobind; only tests need the others.
python_packages=(safetensors==0.8.0 kubernetes-validate==1.37.0 tensorboard==2.18.0 nanobind==3.1.0 moto==4.1.15)

installed() { dpkg-query -W -f='${db:Status-Abbrev}' "$1" 2>/dev/null | grep -q '^ii'; }

python_installed() { /usr/bin/python3 -c "import importlib.metadata as m; m.version('${1%%=*}')" 2>/dev/null; }

missing=()
for package in "${packages[@]}"; do installed "$package" || missing+=("$package"); done
python_missing=()
for package in "${python_packages[@]}"; do python_installed "$package" || python_missing+=("$package"); done
if [ ${#missing[@]} -eq 0 ] && [ ${#python_missing[@]} -eq 0 ]; then exit 0; fi

as_root=()
if [ "$(id -u)" -ne 0 ]; then
  if ! command -v sudo >/dev/null; then
    echo "install_packages.sh: cannot install ${missing[*]} ${python_missing[*]} (expected root or sudo, got neither)" >&2
    exit 1
  fi
  as_root=(sudo -n)
fi
if ! command -v apt-get >/dev/null; then
  echo "install_packages.sh: cannot install ${missing[*]} ${python_missing[*]} (expected Debian 12 with apt-get, got no apt-get)" >&2
  exit 1
fi

echo "Installing $((${#missing[@]} + ${#python_missing[@]})) packages (about a minute): ${missing[*]} ${python_missing[*]}" >&2
log=$(mktemp)
trap 'rm -f "$log"' EXIT
# Tests use the programs of these packages. systemd never starts a masked service.
mask_services() {
  local package service
  "${as_root[@]}" mkdir -p /etc/systemd/system || return 1
  for package in prometheus openssh-server; do
    service=/etc/systemd/system/${package/openssh-server/ssh}.service
    if installed "$package" || [ -e "$service" ]; then continue; fi
    "${as_root[@]}" ln -s /dev/null "$service" || return 1
  done
}
install() {
  if [ ${#missing[@]} -gt 0 ]; then
    mask_services &&
      "${as_root[@]}" apt-get -q update &&
      "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends "${missing[@]}" ||
      return 1
  fi
  if [ ${#python_missing[@]} -gt 0 ]; then
    "${as_root[@]}" /usr/bin/python3 -m pip install --break-system-packages --no-deps "${python_missing[@]}"
  fi
}
if ! install >"$log" 2>&1; then
  tail -n 20 "$log" >&2
  echo "install_packages.sh: the installation failed; its last output lines are above" >&2
  exit 1
fi
