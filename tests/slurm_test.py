"""Runs the batch script of docs/operations.md with programs in place of Slurm's srun and scontrol, which are not installed.

    slurm_test SERVER WORKER OPERATIONS_PAGE
"""

import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import unittest

PROGRAMS = {name: os.path.abspath(path) for name, path in zip(("thinwire-server", "thinwire-worker"), sys.argv[1:3])}
PAGE = pathlib.Path(sys.argv[3]).read_text(encoding="utf-8")
del sys.argv[1:4]

# Starts the tasks of a step, forwards SIGTERM to them, and ends with their highest exit code.
SRUN = """#!/usr/bin/python3
import os, signal, subprocess, sys
words, count = sys.argv[1:], int(os.environ["SLURM_NTASKS"])
while words[0].startswith("--"):
    flag = words.pop(0)
    count = int(flag.removeprefix("--ntasks=")) if flag.startswith("--ntasks=") else count
tasks = [subprocess.Popen(words) for _ in range(count)]
signal.signal(signal.SIGTERM, lambda number, frame: [task.terminate() for task in tasks])
sys.exit(max(task.wait() for task in tasks))
"""
SCONTROL = '#!/bin/sh\n[ "$*" = "show hostnames localhost" ] && echo 127.0.0.1\n'
JOB = """
consistency { mode: sync workers: 2 }
optimization { optimizer: sgd learning_rate: 0.05 }
task { model: softmax dataset: fashion_mnist train_examples: 1000 test_examples: 500 batch_size: 50 device: "cpu" }
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


class SlurmTest(unittest.TestCase):
    def run_script(self, job):
        """Runs the script of the page in a folder with the job file. Returns the exit code, the output and the size of the model."""
        with tempfile.TemporaryDirectory() as name:
            folder = pathlib.Path(name)
            (folder / "bin").mkdir()
            for program, text in (("srun", SRUN), ("scontrol", SCONTROL)):
                (folder / "bin" / program).write_text(text, encoding="utf-8")
                (folder / "bin" / program).chmod(0o755)
            for program, path in PROGRAMS.items():
                (folder / "bin" / program).symlink_to(path)
            (folder / "job.textproto").write_text(job, encoding="utf-8")
            script, = re.findall(r"^```sh job\.sh\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)
            (folder / "job.sh").write_text(script.replace(":7000", ":" + free_port()), encoding="utf-8")
            environment = {"PATH": f"{folder}/bin:{os.environ['PATH']}", "SLURM_JOB_NODELIST": "localhost", "SLURM_NTASKS": "2"}
            end = subprocess.run(["bash", "job.sh"], cwd=folder, env=environment, stdout=subprocess.PIPE,
                                 stderr=subprocess.STDOUT, text=True, timeout=90, check=False)
            model = folder / "model.safetensors"
            return end.returncode, end.stdout, model.stat().st_size if model.exists() else 0

    def test_the_script_of_the_page_trains_and_ends_its_server(self):
        code, output, model_bytes = self.run_script(JOB)
        self.assertEqual(code, 0, output)
        self.assertEqual(output.count('"done"'), 2, output)
        self.assertIn("] stopped", output)  # the server, after SIGTERM
        self.assertGreater(model_bytes, 4 * 7850)

    def test_the_script_ends_with_the_code_of_its_workers(self):
        code, output, _ = self.run_script(JOB.replace("0.05", "1e30"))
        self.assertEqual(code, 65, output)


if __name__ == "__main__":
    unittest.main()
