#!/usr/bin/env bash
# Installs missing packages, builds everything and runs all tests. The last line is `N passed, N failed`, the numbers of
# test cases. The exit code is 0 if and only if no case failed.
#   ./test.sh                              all tests
#   ./test.sh --config=asan //common/...   arguments are passed to `bazel test` instead of the target //...
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

cat >&2 <<'TEXT'
thinwire tests, on Debian 12:
  1. installs missing Debian packages   about a minute, skipped if none is missing
  2. builds everything                  about 14 minutes on two cores, later seconds
  3. runs the tests                     about 6 minutes; results of unchanged targets are cached
TEXT

deploy/install_packages.sh
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then targets=(//...); fi

events=$(mktemp)
trap 'rm -f "$events"' EXIT
progress=()
if [ -t 2 ]; then progress=(--show_progress); fi  # .bazelrc switches it off, for logs
status=0
bazel test "${progress[@]}" --keep_going --build_event_json_file="$events" "${targets[@]}" || status=$?
python3 tests/count_results.py "$events" || status=1
exit "$status"
