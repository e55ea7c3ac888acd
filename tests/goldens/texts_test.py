"""Compares the texts of the programs with golden files: the help of every program and command, the list of all flags, and
the errors of wrong job files.

    texts_test THINWIRE SERVER WORKER
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

from tests.goldens.golden_text import expect_golden

PROGRAMS = {"thinwire": sys.argv[1], "server": sys.argv[2], "worker": sys.argv[3]}
del sys.argv[1:]

# Each job file has at least one error or warning.
JOB_FILES = """
servers: 0
servers: two
name: "My Job"
learning_rate: 0.1
servers: 1 servers: 2
optimization { learning_rat: 0.1 }
optimization { learning_rate: nan }
optimization { learning_rate: -1 momentum: 0.5 }
optimization { optimizer: sgdm }
optimization { optimizer: adam beta1: 1 epsilon: 0 }
optimization { schedule: step decay_at: 0.8 decay_at: 0.5 }
optimization { schedule: noise_scale }
optimization { warmup: 2 }
optimization { selection_density: 0.1 }
optimization { gradient_selection: gtopk selection_rest: workers } consistency { mode: async workers: 2 }
optimization { clip_norm: 1 } recovery { durability: log }
consistency { mode: backup backup: 2 workers: 2 }
consistency { mode: ssp workers: 4 backup: 1 }
consistency { slack: 3 }
consistency { mode: async ordered_fold: true }
consistency { workers: 0 lease_seconds: 0 }
consistency { workers: 8 max_workers: 4 }
consistency { mode: async staleness_policy: drop workers: 2 }
consistency { mode: async staleness_policy: dcasgd workers: 2 }
consistency { mode: ssp auto_backup: true workers: 2 }
compression { push: fp9 }
compression { push: topk density: 0 }
compression { push: fp8_e5m2 density: 0.5 }
compression { push: adaptive }
compression { pull: topk }
compression { pull: delta_qsgd qsgd_levels: 1000 }
compression { momentum_correction: true } optimization { optimizer: momentum }
compression { recipe: sparse } optimization { optimizer: lamb }
compression { recipe: dense }
compression { push: onebit onebit_group: 12 }
compression { shard_size: 1000000 }
recovery { durability: none checkpoint_seconds: 5 }
recovery { durability: log checkpoint_seconds: -1 }
recovery { durability: disk }
task { model: torchscript }
task { model: cnn dataset: mnist }
task { batch_size: 0 epochs: 0 }
task { local_steps: 4 accumulate: 2 }
straggler: "9:50ms"
straggler: "fast"
parameter_group { match: "" }
parameter_group { match: "w" density: 0.5 }
servers: 2 }
task { model: cnn
consistency { mode: async workers: 8 } optimization { optimizer: momentum learning_rate: 0.1 }
""".strip().splitlines()


def run(program, *arguments, **options):
    """Runs a program without any setting in its environment."""
    environment = {name: os.environ[name] for name in ("PATH", "TMPDIR") if name in os.environ}
    environment["LC_ALL"] = "C.UTF-8"
    return subprocess.run([PROGRAMS[program], *arguments], capture_output=True, text=True, check=False, env=environment,
                          **options)


def subcommands(text):
    """Returns the names below the heading "Subcommands:" of a help text."""
    if "\nSubcommands:\n" not in text:
        return []
    return re.findall(r"^  ([a-z]\S*)", text.split("\nSubcommands:\n")[1].split("\n\n")[0], re.MULTILINE)


class TextsTest(unittest.TestCase):
    maxDiff = None

    @classmethod
    def setUpClass(cls):
        cls.help = {}
        for program in PROGRAMS:
            cls.add_help(program)

    @classmethod
    def add_help(cls, program, *command):
        """Collects the help of a command and of its subcommands."""
        result = run(program, *command, "--help")
        assert (result.returncode, result.stderr) == (0, ""), (program, command, result)
        cls.help[" ".join((program, *command))] = result.stdout.replace(str(PROGRAMS[program]), program)
        for name in subcommands(result.stdout):
            cls.add_help(program, *command, name)

    def test_help(self):
        self.assertGreater(len(self.help), 20)
        for command, text in self.help.items():
            with self.subTest(command):
                expect_golden(self, f"help_{command.replace(' ', '_')}.txt", text)

    def test_no_command_and_no_flag_is_removed(self):
        lines = []
        for command, text in self.help.items():
            flags = re.findall(r"^  (?:-\w,)?(--[\w-]+)", text, re.MULTILINE)
            lines += [command, *(f"{command} {flag}" for flag in flags)]
        self.assertGreater(len(lines), 200)
        expect_golden(self, "flags.txt", "\n".join(lines) + "\n")

    def test_errors_of_job_files(self):
        with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
            blocks = []
            for job in JOB_FILES:
                pathlib.Path(folder, "job.textproto").write_text(job + "\n", encoding="utf-8")
                result = run("thinwire", "config", "check", "job.textproto", cwd=folder)
                self.assertTrue(result.stderr, job)
                blocks.append(f"{job}\nexit code {result.returncode}\n{result.stderr}")
        expect_golden(self, "job_errors.txt", "\n".join(blocks))

    def test_errors_of_command_lines(self):
        commands = (("thinwire",), ("thinwire", "trian"), ("thinwire", "train", "--push", "fp9"), ("thinwire", "train", "--pusch", "fp16"),
                    ("thinwire", "train", "--config"), ("thinwire", "config", "check", "missing.textproto"),
                    ("thinwire", "checkpoint", "list", "missing"), ("thinwire", "mode", "--set", "ssp"),
                    ("thinwire", "status"), ("server",), ("worker", "--worker", "x"),
                    ("worker", "--config", "job", "--addresses", "127.0.0.1:7000", "--log_events", "every=0"))
        blocks = []
        for program, *arguments in commands:
            with tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR")) as folder:
                result = run(program, *arguments, cwd=folder)
            self.assertNotEqual(result.returncode, 0)
            blocks.append(f"{' '.join((program, *arguments))}\nexit code {result.returncode}\n{result.stderr}")
        expect_golden(self, "command_errors.txt", "\n".join(blocks))


if __name__ == "__main__":
    PROGRAMS = {name: os.path.abspath(path) for name, path in PROGRAMS.items()}
    unittest.main()
