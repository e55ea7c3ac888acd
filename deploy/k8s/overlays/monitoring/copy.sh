#!/usr/bin/env bash
# Copies the alert rules of deploy/monitoring into the PrometheusRule of this overlay.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")"
{
  cat <<'TEXT'
# Written by copy.sh from deploy/monitoring/rules.yaml.
apiVersion: monitoring.coreos.com/v1
kind: PrometheusRule
metadata:
  name: thinwire
spec:
TEXT
  sed 's/^\(.\)/  \1/' ../../../monitoring/rules.yaml
} > prometheus_rule.yaml
