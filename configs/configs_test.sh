#!/bin/sh
# THINWIRE CONFIG...: checks server.textproto as a ServerConfig, worker.textproto as a WorkerConfig, any other CONFIG as
# a TrainConfig.
set -eu
thinwire=$1
shift
[ $# -gt 0 ] || { echo "want configurations, got none"; exit 1; }
for config; do
  case $config in
    */server.textproto) "$thinwire" config check --as server "$config" ;;
    */worker.textproto) "$thinwire" config check --as worker "$config" ;;
    *) "$thinwire" config check --as train "$config" ;;
  esac
done
