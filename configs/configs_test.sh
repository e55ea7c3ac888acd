#!/bin/sh
# THINWIRE CONFIG...: checks every CONFIG as a TrainConfig.
set -eu
thinwire=$1
shift
[ $# -gt 0 ] || { echo "want configurations, got none"; exit 1; }
"$thinwire" config check --as train "$@"
