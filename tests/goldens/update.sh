#!/usr/bin/env bash
# Updates the golden files of this checkout (docs/testing.md).
#   tests/goldens/update.sh            accepts changed texts, and adds lines for new fields, codecs and settings
#   tests/goldens/update.sh states N   writes the state directories tests/goldens/states/N with this build
# It refuses to change or to remove a line of messages.txt, payloads.txt, protos.txt and checksums.txt, and to change a folder
# states/N.
set -euo pipefail
cd "$(dirname "$(readlink -f "$0")")/../.."
export THINWIRE_GOLDENS=$PWD/tests/goldens
case ${1-} in
  "") targets=(//tests/goldens:messages_test //tests/goldens:checksums_test //tests/goldens:texts_test //tests/admin:cluster_test) ;;
  states) export THINWIRE_NEW_STATES=${2:?N is missing}; targets=(//tests/goldens:states_test) ;;
  *) echo "update.sh: $1: unknown argument (expected none, or states N)" >&2; exit 64 ;;
esac
for target in "${targets[@]}"; do bazel run "$target"; done
git status --short tests/goldens
