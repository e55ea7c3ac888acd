#!/usr/bin/env bash
# Installs what is missing, builds everything, and runs all tests. Ends with the line `N passed, N failed`, which counts
# test cases; the exit status is 0 if and only if none failed.
#   ./test.sh                 all of them
#   ./test.sh --config=asan //common/...   arguments replace the targets and go to `bazel test`
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"

cat >&2 <<'TEXT'
thinwire tests, on Debian 12:
  1. installs what is missing from Debian's packages   about a minute, nothing if all is there
  2. builds everything                                 about 12 minutes on two cores, seconds after that
  3. runs the tests                                    about 6 minutes; results of unchanged targets are kept
TEXT

deploy/install_packages.sh
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then targets=(//...); fi

events=$(mktemp)
trap 'rm -f "$events"' EXIT
status=0
bazel test --keep_going --build_event_json_file="$events" "${targets[@]}" || status=$?
python3 tests/count_results.py "$events" || status=1
exit "$status"
