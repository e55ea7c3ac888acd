#!/usr/bin/env python3
"""Reads the Bazel event file of a test run and prints `N passed, N failed`, counted in GoogleTest cases.

A test program that wrote no result file is counted as one case. A target that did not build is counted as one failure.
The exit code is 1 if a case failed or no case ran.
"""

import json
import sys
import urllib.parse
import xml.etree.ElementTree as ElementTree


def cases(path):
    """Returns the numbers of passed and failed cases in one test.xml."""
    root = ElementTree.parse(path).getroot()
    suites = [root] if root.tag == "testsuite" else root.findall("testsuite")
    total = sum(int(s.get("tests", 0)) for s in suites)
    failed = sum(int(s.get("failures", 0)) + int(s.get("errors", 0)) for s in suites)
    skipped = sum(1 for _ in root.iter("skipped"))
    return total - failed - skipped, failed


def main():
    passed = failed = 0
    broken = []
    with open(sys.argv[1], encoding="utf-8") as events:
        for line in events:
            event = json.loads(line)
            identity = event.get("id", {})
            if "testResult" in event:
                label = identity["testResult"]["label"]
                ok = event["testResult"]["status"] == "PASSED"
                outputs = event["testResult"].get("testActionOutput", [])
                files = [o["uri"] for o in outputs if o["name"] == "test.xml"]
                counted = (0, 0)
                if files:
                    counted = cases(urllib.parse.unquote(urllib.parse.urlparse(files[0]).path))
                if not ok and counted[1] == 0:
                    counted = (counted[0], 1)  # a program that crashed or timed out counts as one failed test
                passed, failed = passed + counted[0], failed + counted[1]
                if not ok:
                    broken.append(label)
            elif "targetCompleted" in identity and not event.get("completed", {}).get("success", False):
                # The branch above counts tests that ran and failed. A failed target without a test result did not
                # build.
                broken.append(identity["targetCompleted"]["label"] + " (did not build)")
                failed += 1
    for label in sorted(set(broken)):
        print(f"failed: {label}", file=sys.stderr)
    print(f"{passed} passed, {failed} failed")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
