"""Checks the include dependencies between folders (docs/architecture.md).

Each folder includes only allowed folders, directly and transitively. No two folders include each other. server/core and
all files that it includes are pure.
"""

import pathlib
import re
import sys
import unittest

# A part is a folder with its subfolders, except subfolders that are parts themselves. This table maps each part to the
# parts that it may include, directly or transitively. Within a part, any folder may include any other folder, unless
# the other folder includes the first.
PARTS = {
    "kernels": set(),
    "common": {"kernels"},
    "proto": {"common"},
    "config": {"proto", "common"},
    "server/core": {"common", "kernels"},
    "server/durable": {"server/core", "proto", "common", "kernels"},
    "admin": {"proto", "common"},
    "server/shards": {"server/durable", "server/core", "proto", "common"},
    "server/protocols": {"server/shards", "server/durable", "server/core", "config", "proto", "common"},
    "server/job": {"server/protocols", "server/shards", "server/durable", "server/core", "config", "proto", "common"},
    "server/rpc": {"server/job", "server/protocols", "server/shards", "server/durable", "server/core", "config", "proto", "common"},
    "server/admin": {"server/rpc", "server/job", "server/protocols", "server/shards", "admin",
                     "server/durable", "server/core", "config", "proto", "common"},
    "server": {"client", "server/admin", "server/rpc", "server/job", "server/protocols", "server/shards", "admin",
               "server/durable", "server/core", "config", "proto", "common"},
    "client": {"proto", "common", "kernels"},
    "worker": {"client", "admin", "config", "proto", "common"},
    "python": {"worker", "client", "admin", "config", "proto", "common"},
    "cli": {"client", "server/durable", "server/core", "admin", "config", "proto", "common"},
}
# The files of these folders may include every part.
UNRESTRICTED = {"tests", "bench", "experiments", "sim"}
# Every part may include these parts transitively (through another part), because they are implementation details of
# other parts.
TRANSITIVE = {"kernels"}

# Matches code that server/core must not contain: it could make a replay differ from the original run, or make a
# decision depend on anything except the events.
IMPURE = re.compile(
    r"#include <(thread|mutex|shared_mutex|condition_variable|future|chrono|ctime|time\.h|random|fstream|iostream|"
    r"filesystem|atomic|cstdio|unordered_map|unordered_set|sys/[a-z]+\.h|unistd\.h)>|absl/time/clock|absl/random|"
    r"absl/synchronization|absl/container/flat_hash|grpc|boost/|torch/|glog/|getenv|\.pb\.h"
)
# Sources behind the headers of server/core that may contain forbidden code, because no caller can observe its effect.
# Maps each source to the reason.
PURE_BEHIND_THE_HEADER = {
    "common/memory/buffer_pool.cc": "a mutex: other threads may release buffers",
}

# Matches code that makes a thread or reads a clock of the machine. Other code gets an Executor, an ExecutorFactory or a
# Clock, so that it can also run in virtual time.
OWN_TIME = re.compile(
    r"std::(j?thread\b(?!::)|async\b)|\b(io_context|thread_pool)\b(?!\.hpp)|\b(Threads|ThreadPool|ThreadExecutor)\b|"
    r"\b(SteadyClock|UnixClock)\b|absl::(Now|GetCurrentTimeNanos)\(|\b(system|steady)_clock::now\("
)
# The folder with the threads and the clocks.
TIME = "common/time"
# Files that make the threads and the clocks of a program and pass them down. Each command of cli is a program, and so is a
# Python module.
MAINS = re.compile(r"^(server|worker|cli)/main\.cc$|^python/py_client\.(h|cc)$|^cli/(\w+/)?\w+_command\.cc$|^server/job/job_threads\.h$")
# Other files with a thread or a clock of their own. Maps each file to the reason.
TIME_OF_ITS_OWN = {
    "admin/http_server.cc": "a thread that serves pages",
    "cli/checkpoint/checkpoint_calls.cc": "the deadline of a command that asks again",
    "cli/doctor/link.cc": "the deadline of a gRPC call",
    "cli/rpc/call_server.cc": "the deadline of a gRPC call",
    "cli/rpc/server_calls.cc": "the deadlines of gRPC calls",
    "client/exchange/exchange_fixture.h": "for tests",
    "client/transport/claim_number.cc": "the deadline of a gRPC call",
    "client/transport/grpc_transport.cc": "the deadlines of gRPC calls",
    "common/memory/memory_trimmer.cc": "a thread that returns free memory",
    "common/memory/memory_trimmer.h": "a thread that returns free memory",
    "config/man_page.cc": "the date of a manual page",
    "proto/grpc_credentials.cc": "the dates of certificates",
    "server/admin/job_watch.cc": "a thread that asks the servers for their status",
    "server/admin/job_watch.h": "a thread that asks the servers for their status",
    "server/admin/remote_status.cc": "the deadline of a gRPC call",
    "server/rpc/grpc_access.cc": "the dates of certificates",
    "server/rpc/grpc_peers.cc": "the deadlines of gRPC calls",
    "server/rpc/listener.cc": "the deadline of gRPC's end",
    "server/protocols/membership/worker_tokens.h": "the dates of tokens",
    "server/process/stop_requests.h": "signals, for which the main thread waits",
    "worker/trainer/events.h": "a thread that reports the waits of the training thread",
    "worker/process/termination.cc": "a thread that waits for signals",
    "worker/process/termination.h": "a thread that waits for signals",
}

# Headers of libraries that take seconds to compile, and the sources of the programs that may include them, directly or
# through a header of this tree. Other sources use them through a small header: config/command_flags.h for CLI11,
# proto/grpc_credentials.h and the classes that own a stub for gRPC, admin/http_server.h for Beast, worker/models/model.h
# for LibTorch. Maps each regular expression of an included path to the sources.
HEAVY_HEADERS = {
    r"CLI/": {
        "cli/completion.cc",
        "cli/help_command.cc",
        "cli/main.cc",
        "config/command_flags.cc",
        "config/completion.cc",
        "config/field_flags.cc",
        "config/help.cc",
        "config/man_page.cc",
    },
    r"grpcpp/|.*\.grpc\.pb\.h": {
        "cli/doctor/doctor_command.cc",
        "cli/doctor/link.cc",
        "cli/rpc/call_error.cc",
        "cli/rpc/call_server.cc",
        "cli/rpc/server_calls.cc",
        "client/transport/claim_number.cc",
        "client/transport/grpc_transport.cc",
        "proto/grpc_bytes.cc",
        "proto/grpc_credentials.cc",
        "proto/pending_calls.cc",
        "server/admin/remote_status.cc",
        "server/rpc/grpc_access.cc",
        "server/rpc/grpc_peers.cc",
        "server/rpc/listener.cc",
        "server/rpc/services.cc",
        "server/main.cc",
    },
    r"boost/beast": {"admin/http_server.cc"},
    r"nlohmann/json\.hpp": {
        "admin/server_json.cc",
        "admin/traffic.cc",
        "cli/doctor/doctor_command.cc",
        "cli/doctor/doctor_report.cc",
        "cli/k8s/manifests.cc",
        "cli/k8s/yaml_text.cc",
        "cli/status/status_command.cc",
        "cli/trace/trace_command.cc",
        "cli/train/report.cc",
        "cli/train/train_admin.cc",
        "cli/train/train_command.cc",
        "common/files/safetensors.cc",
        "common/time/trace.cc",
        "config/effective.cc",
        "server/admin/server_admin.cc",
        "worker/process/worker_admin.cc",
    },
    r"torch/|ATen/": {
        "worker/models/built_in.cc",
        "worker/models/factory.cc",
        "worker/models/layers.cc",
        "worker/models/libtorch.cc",
        "worker/models/torch_model.cc",
        "worker/models/torchscript.cc",
    },
}

ROOT = pathlib.Path(sys.argv.pop(1)).resolve().parent


def folder(path):
    return path.rsplit("/", 1)[0] if "/" in path else ""


def part(path):
    """Returns the part that contains PATH, or the first component of PATH if no part contains it."""
    name = folder(path)
    while name and name not in PARTS:
        name = folder(name)
    return name or path.split("/")[0]


def is_test(path):
    """Returns True if the file at PATH is built for tests only."""
    stem = path.rsplit("/", 1)[-1].split(".")[0]
    return "testing" in path.split("/") or stem.endswith(("_test", "_fuzz", "_cases"))


def read_sources():
    """Returns {path from the root: text} for every C++ and CUDA file."""
    found = {}
    for ending in ("*.h", "*.cc", "*.cu", "*.cuh"):
        for path in sorted(ROOT.rglob(ending)):
            name = str(path.relative_to(ROOT))
            if not name.startswith(("bazel-", "third_party/", ".")):
                found[name] = path.read_text(encoding="utf-8")
    return found


def without_comments(text):
    return re.sub(r"//.*|#include.*", "", text)


SOURCES = read_sources()
# Maps the path of each source to the files of this tree that the source includes directly. A generated header (.pb.h)
# belongs to the folder in its path.
INCLUDES = {
    name: [
        included
        for included in re.findall(r'^#include "([^"]+)"', text, re.MULTILINE)
        if included in SOURCES or (included.endswith(".pb.h") and (ROOT / folder(included)).is_dir())
    ]
    for name, text in SOURCES.items()
}

# Maps the path of each source to all paths that it includes directly.
ALL_INCLUDES = {
    name: re.findall(r'^#include [<"]([^>"]+)[>"]', text, re.MULTILINE) for name, text in SOURCES.items()
}


def closure(names):
    """Returns {file: chain} for every file that the files NAMES include, directly or transitively.

    The chain is a list of files, from one of NAMES to the file, in which each file includes the next.
    """
    chains = {name: [name] for name in names}
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        for included in INCLUDES.get(name, []):
            if included not in chains:
                chains[included] = chains[name] + [included]
                waiting.append(included)
    return chains


class ArrowsTest(unittest.TestCase):
    def test_the_tree_is_found(self):
        self.assertTrue((ROOT / "WORKSPACE").exists(), ROOT)
        self.assertGreater(len(SOURCES), 300)
        self.assertGreater(sum(len(included) for included in INCLUDES.values()), 1000)

    def test_every_part_is_listed(self):
        for name in SOURCES:
            self.assertIn(part(name), set(PARTS) | UNRESTRICTED, f"{name}: a folder that docs/architecture.md does not list")

    def test_every_include_is_allowed(self):
        for name, included in INCLUDES.items():
            here = part(name)
            if here in UNRESTRICTED:
                continue
            for path in included:
                there = part(path)
                self.assertTrue(
                    there == here or there in PARTS[here], f"{name} includes {path}, but {here} may not include {there}"
                )

    def test_the_transitive_closure_is_allowed(self):
        for here, allowed in PARTS.items():
            checked = 0
            names = [name for name in SOURCES if part(name) == here and not is_test(name)]
            for path, chain in closure(names).items():
                there = part(path)
                checked += 1
                self.assertTrue(
                    there == here or there in allowed | TRANSITIVE, f"{here} may not reach {there}: {' -> '.join(chain)}"
                )
            self.assertGreater(checked, 0, here)

    def test_the_parts_form_no_cycle(self):
        done = set()

        def visit(node, above):
            self.assertNotIn(node, above, f"a cycle: {' -> '.join(above + [node])}")
            if node not in done:
                for below in PARTS[node]:
                    visit(below, above + [node])
                done.add(node)

        for node in PARTS:
            visit(node, [])

    def test_no_two_folders_include_each_other(self):
        """Treats every subfolder as a separate folder. Tests and UNRESTRICTED folders are exempt."""
        examples = {}
        for name, included in INCLUDES.items():
            if is_test(name) or part(name) in UNRESTRICTED:
                continue
            for path in included:
                if folder(path) != folder(name):
                    examples.setdefault((folder(name), folder(path)), f"{name} includes {path}")
        self.assertGreater(len(examples), 15)
        for (here, there), example in sorted(examples.items()):
            self.assertFalse((there, here) in examples, f"{example}, and {examples.get((there, here))}")

    def test_the_core_and_its_includes_are_pure(self):
        core = [name for name in SOURCES if part(name) == "server/core" and not is_test(name)]
        headers = closure(core)
        self.assertGreater(len([name for name in headers if part(name) != "server/core"]), 20)
        # Also checks the .cc file of every header that server/core includes, because server/core runs its code.
        behind = [re.sub(r"\.h$", ".cc", name) for name in headers if name.endswith(".h")]
        for name in sorted(set(headers) | {name for name in behind if name in SOURCES}):
            if name in PURE_BEHIND_THE_HEADER:
                continue
            self.assertIn(name, SOURCES, f"a generated header: {' -> '.join(headers.get(name, [name]))}")
            found = IMPURE.search(SOURCES[name])
            self.assertIsNone(found, f"{name} has {found and found.group(0)}: {' -> '.join(headers.get(name, [name]))}")

    def test_threads_and_clocks_come_from_the_main_functions(self):
        checked = 0
        for name in SOURCES:
            exempt = folder(name) == TIME or MAINS.search(name) or name in TIME_OF_ITS_OWN
            if part(name) in UNRESTRICTED or is_test(name) or exempt:
                continue
            checked += 1
            found = OWN_TIME.search(without_comments(SOURCES[name]))
            self.assertIsNone(found, f"{name} has {found and found.group(0)}: take an Executor or a Clock instead")
        self.assertGreater(checked, 300)

    def test_heavy_headers_have_few_users(self):
        """A new user of a heavy header adds seconds to every build. Tests and UNRESTRICTED folders are exempt."""
        users = {heavy: set() for heavy in HEAVY_HEADERS}
        for name in SOURCES:
            if not name.endswith(".cc") or is_test(name) or part(name) in UNRESTRICTED:
                continue
            for included, chain in closure([name]).items():
                for heavy, allowed in HEAVY_HEADERS.items():
                    found = [path for path in ALL_INCLUDES.get(included, []) if re.match(heavy, path)]
                    if found:
                        users[heavy].add(name)
                        self.assertIn(name, allowed, f"{' -> '.join(chain + found[:1])}: not in HEAVY_HEADERS")
        self.assertEqual(users, HEAVY_HEADERS)

    def test_the_exceptions_are_needed(self):
        for name in PURE_BEHIND_THE_HEADER:
            self.assertIsNotNone(IMPURE.search(SOURCES[name]), f"{name} is pure: remove it from PURE_BEHIND_THE_HEADER")
        for name in TIME_OF_ITS_OWN:
            found = OWN_TIME.search(without_comments(SOURCES[name]))
            self.assertIsNotNone(found, f"{name} has no time of its own: remove it from TIME_OF_ITS_OWN")


if __name__ == "__main__":
    unittest.main()
