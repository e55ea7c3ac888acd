"""Keeps the arrows of docs/architecture.md: a room includes only what it may, and server/core stays pure."""

import pathlib
import re
import sys
import unittest

# An arrow is an include. Everything may include itself; tests, bench and experiments may include everything.
ARROWS = {
    "kernels": set(),
    "common": {"kernels"},
    "proto": {"common"},
    "server/core": {"common", "kernels"},
    "server/edge": {"server/core", "proto", "common"},
    "server": {"server/edge", "server/core", "proto", "common"},
    "client/options": {"common"},
    "client/transport": {"client/options", "proto", "common"},
    "client/replica": {"proto", "common", "kernels"},
    "client/encode": {"client/options", "client/replica", "proto", "common", "kernels"},
    "client/testing": {"client/transport", "proto", "common"},
    "client/exchange": {
        "client/options",
        "client/transport",
        "client/replica",
        "client/encode",
        "client/testing",
        "proto",
        "common",
    },
    "client/gpu": {"client/options", "client/replica", "client/encode", "proto", "common", "kernels"},
    "client": {
        "client/options",
        "client/transport",
        "client/replica",
        "client/encode",
        "client/exchange",
        "client/testing",
        "proto",
        "common",
    },
    "worker": {
        "client",
        "client/options",
        "client/transport",
        "client/encode",
        "client/gpu",
        "client/testing",
        "proto",
        "common",
    },
    "cli": {"proto", "common"},
}
FREE = {"tests", "bench", "experiments"}

# What would make a replay differ from the run, or let a decision depend on anything but its events.
IMPURE = re.compile(
    r"#include <(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|random|fstream|iostream|"
    r"filesystem|atomic|cstdio|unordered_map|unordered_set)>|absl/time/clock|absl/random|absl/synchronization|"
    r"absl/container/flat_hash|grpc|boost/|torch/|glog/|getenv|\.pb\.h"
)

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent


def room(path):
    """The room of a path from the root. The folders of server and client are rooms of their own."""
    parts = path.split("/")
    if parts[0] in ("server", "client") and len(parts) > 2:
        return "/".join(parts[:2])
    return parts[0]


def sources():
    for ending in ("*.h", "*.cc", "*.cu", "*.cuh"):
        for path in sorted(ROOT.rglob(ending)):
            name = str(path.relative_to(ROOT))
            if not name.startswith(("bazel-", "third_party/", ".")):
                yield name, path.read_text(encoding="utf-8")


class ArrowsTest(unittest.TestCase):
    def test_the_tree_is_there(self):
        self.assertTrue((ROOT / "WORKSPACE").exists(), ROOT)
        self.assertGreater(len(list(sources())), 20)

    def test_every_include_follows_an_arrow(self):
        for name, text in sources():
            here = room(name)
            if here in FREE:
                continue
            self.assertIn(here, ARROWS, f"{name}: a room that docs/architecture.md does not draw")
            for included in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE):
                there = room(included)
                if "/" not in included or not (ROOT / there).is_dir():
                    continue  # a library's header in quotes
                self.assertTrue(
                    there == here or there in ARROWS[here], f"{name} includes {included}: {here} -> {there} is no arrow"
                )

    def test_the_arrows_make_no_circle(self):
        done = set()

        def visit(node, above):
            self.assertNotIn(node, above, f"a circle: {' -> '.join(above + [node])}")
            if node not in done:
                for below in ARROWS[node]:
                    visit(below, above + [node])
                done.add(node)

        for node in ARROWS:
            visit(node, [])

    def test_the_core_is_pure(self):
        for name, text in sources():
            for_tests = name.startswith("server/core/testing/") or name.endswith("_test.cc")
            if name.startswith("server/core/") and not for_tests:
                found = IMPURE.search(text)
                self.assertIsNone(found, f"{name}: {found and found.group(0)}")


if __name__ == "__main__":
    unittest.main()
