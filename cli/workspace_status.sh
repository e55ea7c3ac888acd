#!/bin/sh
# What a build is stamped with; without git, or outside a checkout, nothing.
revision=$(git rev-parse --short=12 HEAD 2>/dev/null) || exit 0
git diff --quiet HEAD -- 2>/dev/null || revision="$revision+"
echo "STABLE_GIT_REVISION $revision"
