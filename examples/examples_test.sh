#!/bin/sh
# Usage: examples_test.sh THINWIRE EXAMPLE...
# Checks that every example is a valid job file, and that the effective job of each example is also a valid job file.
set -eu
thinwire=$1
shift
[ $# -gt 0 ] || { echo "no examples (expected at least one)"; exit 1; }
for example; do
  "$thinwire" config check "$example"
  "$thinwire" config show "$example" > "$TEST_TMPDIR/effective.textproto"
  "$thinwire" config check "$TEST_TMPDIR/effective.textproto"
done
