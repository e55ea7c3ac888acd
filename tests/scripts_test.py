"""Tests quickstart.sh, test.sh and nightly.sh with stubs of the programs that they call."""

import os
import pathlib
import pty
import shutil
import subprocess
import sys
import tempfile
import unittest

SCRIPTS = {pathlib.Path(path).name: pathlib.Path(path) for path in sys.argv[1:]}
del sys.argv[1:]


# The last lines of nightly.sh --seeds 12 --seed 5 --fuzz_seconds 3.
PARTS = (r"shards: passed, .*//sim:simulate -- --durability none --seed 5 --count 48",
         r"cluster: passed, .*//sim:simulate -- --seed 5 --count 12",
         r"fuzz: passed, \d+ s: 3 s for each of 2 targets",
         r"server: passed, .*//tests/fuzz:live_server -- --seconds 120 --seed 5",
         r"sanitizers: passed, \d+ s: 2 test programs",
         r"tsan: passed, \d+ s: 1 test programs",
         r"headers: passed, \d+ s: .*build --config=plain_headers .*",
         r"promises: passed, \d+ s: 2 cases with long faults",
         r"times: passed, \d+ s: sync 5\.06 s, return 0\.70 s",
         r"chaos: passed, .*//tests:chaos -- --seconds 180 --seed 5 --kill_servers",
         r"page: passed, \d+ s: 16 cases",
         r"monitoring: passed, \d+ s: fired and resolved: ThinwireStepStalled",
         r"deb: passed, \d+ s: installed and trained",
         r"torch: passed, \d+ s: PyTorch 2\.15\.0",
         r"wheel: passed, \d+ s: installed and trained",
         r"image: passed, \d+ s: built and trained",
         r"podman: passed, .*//tests/k8s:podman_run",
         r"walk: passed, \d+ s: walked",
         r"operate: passed, \d+ s: 38 passed, 0 failed")

# A stub of bazel.
BAZEL = """case "$*" in
  *config=asan*) echo "//client:a_test   (cached) PASSED in 0.1s"; echo "//client:b_test   PASSED in 3.2s" ;;
  *config=tsan*) echo "//client:a_test   PASSED in 9.1s" ;;
  *promises_test*) echo "[       OK ] PromisesTest.A (2 ms)"; echo "[       OK ] PromisesTest.B (2 ms)"; echo "1 test passes." ;;
  *page_test*) echo "Ran 9 tests in 2.0s" ;;
  *browser_test*) echo "Ran 7 tests in 2.0s"; echo OK ;;
  *prometheus_test*) echo "fired and resolved: ThinwireStepStalled"; echo OK ;;
  *) echo "chaos: $*" ;;
esac"""


class ScriptsTest(unittest.TestCase):
    def bazel_arguments(self, script, on_a_terminal):
        """Runs SCRIPT in a folder of stubs and returns the arguments of its call of bazel."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            shutil.copy(SCRIPTS[script], folder / script)
            stubs = {
                "bin/bazel": 'echo "$@" > "$STUB_ARGUMENTS"',
                "bin/python3": "exit 0",
                "deploy/install_packages.sh": "exit 0",
                "bazel-bin/cli/thinwire": "exit 0",
            }
            for path, text in stubs.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(f"#!/bin/sh\n{text}\n")
                (folder / path).chmod(0o755)
            environment = {
                "PATH": f"{folder}/bin:{os.environ['PATH']}",
                "STUB_ARGUMENTS": str(folder / "arguments"),
            }
            terminal, end = pty.openpty()
            error = end if on_a_terminal else subprocess.DEVNULL
            subprocess.run([str(folder / script)], env=environment, stderr=error, timeout=60, check=True)
            os.close(terminal)
            os.close(end)
            return (folder / "arguments").read_text().split()

    def test_the_progress_of_the_build_is_shown_on_a_terminal_only(self):
        for script in ("quickstart.sh", "test.sh"):
            self.assertIn("--show_progress", self.bazel_arguments(script, on_a_terminal=True))
            self.assertNotIn("--show_progress", self.bazel_arguments(script, on_a_terminal=False))

    def nightly(self, bazel, flags=()):
        """Runs nightly.sh with a stub of bazel, whose script is BAZEL. Returns the exit code and the output."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            stubs = {
                "bin/bazel": bazel,
                "bin/mmdebstrap": "exit 0",
                "bin/chromium": "exit 0",
                "bin/podman": "exit 0",
                "bin/runc": "exit 0",
                "bin/id": "echo 0",
                "tests/fuzz/run.sh": 'echo "fuzz frame $2"; echo "fuzz payload $2"',
                "bench/faults.sh": 'echo "seconds faults.sync 5.06"; echo "seconds faults.return 0.70"',
                "tests/deb_test.sh": 'echo "installed and trained"',
                "tests/newest_torch.sh": 'echo "PyTorch 2.15.0"',
                "tests/wheel_test.sh": 'echo "installed and trained"',
                "tests/image_test.sh": 'echo "built and trained"',
                "tests/walk.sh": 'echo "walked"',
                "tests/operate.sh": 'echo "38 passed, 0 failed"',
            }
            for path, text in stubs.items():
                (folder / path).parent.mkdir(parents=True, exist_ok=True)
                (folder / path).write_text(f"#!/bin/sh\n{text}\n")
                (folder / path).chmod(0o755)
            shutil.copy(SCRIPTS["nightly.sh"], folder / "tests" / "nightly.sh")
            environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "TMPDIR": name}
            run = subprocess.run([str(folder / "tests" / "nightly.sh"), *flags], env=environment, text=True,
                                 stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60, check=False)
            return run.returncode, run.stdout

    def test_nightly_ends_with_one_line_per_part(self):
        code, output = self.nightly(BAZEL, ["--seeds", "12", "--seed", "5", "--fuzz_seconds", "3"])
        self.assertEqual(code, 0, output)
        self.expect_parts(output, PARTS)

    def test_nightly_runs_only_the_named_parts(self):
        code, output = self.nightly(BAZEL, ["--seed", "5", "--seeds", "12", "--parts", "cluster,page"])
        self.assertEqual(code, 0, output)
        self.expect_parts(output, [PARTS[1], PARTS[10]])

    def expect_parts(self, output, parts):
        """Expects that OUTPUT ends with an empty line and one line for each of PARTS."""
        lines = output.splitlines()[-len(parts) - 1:]
        self.assertEqual(lines[0], "")
        for line, expected in zip(lines[1:], parts):
            self.assertRegex(line, f"^{expected}$")

    def test_nightly_fails_if_a_part_fails(self):
        code, output = self.nightly('case "$*" in *live_server*) echo "the server ended"; exit 3 ;; esac')
        self.assertEqual(code, 1)
        self.assertRegex(output, r"(?m)^server: FAILED, log .*/server, \d+ s: the server ended$")
        self.assertEqual(self.nightly("", ["--explode", "1"])[0], 64)
        code, output = self.nightly("", ["--parts", "cluster,nonsense"])
        self.assertEqual(code, 64)
        self.assertRegex(output, r"--parts: unknown part \(expected some of shards .*, got nonsense\)")

    def test_nightly_fails_if_no_sanitized_test_ran(self):
        for part in ("sanitizers", "tsan"):
            code, output = self.nightly("", ["--parts", part])
            self.assertEqual(code, 1)
            self.assertRegex(output, rf"(?m)^{part}: FAILED, log .*/{part}, \d+ s: 0 test programs$")


if __name__ == "__main__":
    unittest.main()
