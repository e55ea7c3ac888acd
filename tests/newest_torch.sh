#!/usr/bin/env bash
# Runs the tests of the Python package with the newest PyTorch of PyPI, about 5 GB, in a folder that is removed at the end.
# Debian's PyTorch is older than the hooks that the package uses where they exist. The last line names the version.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/.."
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
/usr/bin/python3 -m pip install --quiet --no-cache-dir --target "$folder" torch numpy
bazel test --test_env=PYTHONPATH="$folder" //tests/python/... //tests/python:torchrun_nightly_test
PYTHONPATH=$folder /usr/bin/python3 -c "import torch; print('PyTorch', torch.__version__)"
