"""Tests quickstart.sh and test.sh with stubs of the programs that they call."""

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
        self.assertEqual(set(SCRIPTS), {"quickstart.sh", "test.sh"})
        for script in SCRIPTS:
            self.assertIn("--show_progress", self.bazel_arguments(script, on_a_terminal=True))
            self.assertNotIn("--show_progress", self.bazel_arguments(script, on_a_terminal=False))


if __name__ == "__main__":
    unittest.main()
