#!/bin/sh
# Prints the revision that a build is stamped with; prints nothing without git or outside a checkout.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD -- 2>/dev/null || revision="$revision+"
echo "STABLE_GIT_REVISION $revision"
