#!/bin/sh
# Prints the git revision for Bazel, as the line "STABLE_GIT_REVISION REVISION". A revision with uncommitted changes
# ends with "+". Prints nothing if git fails.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD -- 2>/dev/null || revision="$revision+"
echo "STABLE_GIT_REVISION $revision"
