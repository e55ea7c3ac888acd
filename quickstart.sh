#!/usr/bin/env bash
# Installs missing packages, builds thinwire, and trains a small CNN on Fashion-MNIST with 2 servers and 4 workers.
# Arguments are passed to `thinwire train`: ./quickstart.sh --mode async --push topk
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

for argument in "$@"; do
  if [ "$argument" = --help ] || [ "$argument" = -h ]; then
    sed -n '2,3s/^# //p' "$0"
    exit 0
  fi
done

cat >&2 <<'TEXT'
thinwire quickstart, on Debian 12:
  1. installs missing Debian packages                        about a minute, skipped if none is missing
  2. builds the programs                                     about 5 minutes on two cores, later seconds
  3. trains with 2 servers, 4 workers, sync, fp8 gradients   about a minute
TEXT

deploy/install_packages.sh
echo "Building..." >&2
progress=()
if [ -t 2 ]; then progress=(--show_progress); fi  # .bazelrc switches it off, for logs
bazel build "${progress[@]}" //cli:thinwire //server:server //worker:worker
exec bazel-bin/cli/thinwire train --config examples/fashion_mnist.textproto "$@"
