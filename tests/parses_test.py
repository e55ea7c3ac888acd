"""Checks that every decoder has a test with the tag `parses`. .ci/run and tests/nightly.sh run these tests with sanitizers.

A decoder is a function in a header of FOLDERS that returns a Status and whose name begins with Parse, Read or Decode.
"""

import ast
import pathlib
import re
import sys
import unittest

# Folders with code that reads bytes of a peer, a user or a file. .ci/run runs all tests of common, kernels and server/core
# with sanitizers, so they need no tag.
FOLDERS = ("proto", "config", "server/durable", "server/job", "server/rpc", "server/shards", "client", "worker/datasets")

# Maps decoders that no tagged test calls itself to the decoder that calls them.
EXEMPT = {
    "ParseMessageText": "ParseJobText",
    "ReadMessageText": "ReadJobFile",
    "ReadMessage": "ReadLeadState",
}

DECODER = re.compile(r"^absl::Status(?:Or<.*>)? ((?:Parse|Read|Decode)\w+)\(", re.MULTILINE)

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent


def tagged_sources():
    """Returns {path from the root: text} for the sources of all tests of third_party/rules.bzl with the tag."""
    found = {}
    for build in sorted(ROOT.rglob("BUILD")):
        folder = build.parent.relative_to(ROOT)
        if str(folder).startswith("bazel-"):
            continue
        for node in ast.walk(ast.parse(build.read_text(encoding="utf-8"))):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            values = {keyword.arg: keyword.value for keyword in node.keywords}
            if node.func.id == "tw_test":
                tags, suffix = "tags", ".cc"
            elif node.func.id == "tw_library":
                tags, suffix = "test_tags", "_test.cc"
            else:
                continue
            if tags in values and "parses" in ast.literal_eval(values[tags]):
                path = folder / (ast.literal_eval(values["name"]) + suffix)
                found[str(path)] = (ROOT / path).read_text(encoding="utf-8")
    return found


TAGGED = tagged_sources()


def called_in_a_tagged_test(name):
    return any(re.search(rf"\b{name}\(", text) for text in TAGGED.values())


class ParsesTest(unittest.TestCase):
    def test_every_fuzz_target_has_the_tag(self):
        macro = (ROOT / "tests" / "fuzz" / "fuzz_target.bzl").read_text(encoding="utf-8")
        self.assertRegex(macro, r'tags = \[[^\]]*"parses"')

    def test_every_decoder_has_a_tagged_test(self):
        checked, missing = 0, []
        for folder in FOLDERS:
            for header in sorted((ROOT / folder).rglob("*.h")):
                if "testing" in header.parts:
                    continue
                for name in DECODER.findall(header.read_text(encoding="utf-8")):
                    checked += 1
                    if name not in EXEMPT and not called_in_a_tagged_test(name):
                        missing.append(f"{header.relative_to(ROOT)}: {name}")
        self.assertEqual(missing, [], 'decoders that no test with tags = ["parses"] calls')
        self.assertGreater(checked, 15)

    def test_the_exceptions_are_needed(self):
        for name, caller in EXEMPT.items():
            self.assertFalse(called_in_a_tagged_test(name), f"{name}: remove it from EXEMPT")
            self.assertTrue(called_in_a_tagged_test(caller), f"{caller}: no tagged test calls it")


if __name__ == "__main__":
    unittest.main()
