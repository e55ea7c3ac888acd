"""Runs each program of examples/python to its end, on a part of its data, and checks what it has learned."""

import importlib.util
import os
import re
import subprocess
import sys
import unittest

from tests.python import jobs


class ExamplesTest(unittest.TestCase):
    def output_of(self, module, *arguments):
        """Returns the output of a Python module that runs an example with two workers."""
        done = subprocess.run([sys.executable, "-m", module, *arguments], capture_output=True, text=True, timeout=200,
                              env=dict(os.environ, PYTHONPATH=jobs.PYTHONPATH, OMP_NUM_THREADS="1"))
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return done.stdout

    def launch(self, servers, example, *arguments):
        return self.output_of("thinwire.launch", "--workers", "2", "--servers", servers, "--server_program", jobs.SERVER,
                              f"examples/python/{example}.py", *arguments)

    def value_in(self, output, name):
        """Returns the number after NAME in a line of worker 0."""
        found = re.search(rf"^\S*worker 0: .*\b{name} (\d+\.\d+)", output, re.MULTILINE)
        self.assertIsNotNone(found, output)
        return float(found.group(1))

    def test_fashion_mnist(self):
        output = self.launch("2", "fashion_mnist", "--epochs", "1", "--train_examples", "6400", "--push", "fp8_e5m2", "--pull",
                             "bf16")
        for name in ("worker 0: ", "worker 1: ", "server 0: ", "server 1: "):
            self.assertIn("\n" + name, "\n" + output)
        self.assertGreater(self.value_in(output, "test accuracy"), 0.65)

    def test_char_transformer_with_and_without_local_steps(self):
        for arguments in ((), ("--every", "10")):
            output = self.launch("2", "char_transformer", "--steps", "30", *arguments, "--push", "fp8_e5m2")
            self.assertLess(self.value_in(output, "test loss"), 3.8, "86 characters with equal probabilities have 4.45")

    def test_numpy_regression_loads_no_pytorch(self):
        output = self.launch("1", "numpy_regression", "--push", "fp8_e5m2")
        self.assertLess(self.value_in(output, "2 workers, loss"), 0.02, "the noise alone has 0.01, the first step about 1.2")
        check = "import sys, thinwire; sys.exit('torch' in sys.modules)"
        subprocess.run([sys.executable, "-c", check], env=dict(os.environ, PYTHONPATH=jobs.PYTHONPATH), check=True)

    @unittest.skipUnless(importlib.util.find_spec("jax"), "needs JAX (pip install jax)")
    def test_jax_regression(self):
        output = self.launch("1", "jax_regression", "--push", "fp8_e5m2")
        self.assertLess(self.value_in(output, "2 workers, loss"), 0.05, "the noise alone has 0.01, the first step about 1")

    def test_resnet20_in_bf16(self):
        output = self.launch("1", "resnet20", "--epochs", "1", "--train_examples", "1280", "--test_examples", "500", "--bf16")
        self.assertLess(self.value_in(output, "step 20, loss"), 2, "ten classes with equal probabilities have 2.30")
        self.value_in(output, "test accuracy")

    def test_pipeline(self):
        # PyTorch 1.13 with Python 3.11 needs --redirects and --tee.
        schedules = ["plain"] + ["gpipe", "1f1b"] * (importlib.util.find_spec("torch.distributed.pipelining") is not None)
        for schedule in schedules:
            output = self.output_of("torch.distributed.run", "--standalone", "--nproc_per_node", "4", "--redirects", "1", "--tee", "1",
                                    "examples/python/pipeline.py", "--steps", "30", "--push", "fp8_e5m2", "--schedule", schedule)
            losses = re.findall(r"worker \d: training loss (\d+\.\d+)", output)
            self.assertEqual(len(losses), 2, output)
            for loss in losses:
                self.assertLess(float(loss), 3.8, "86 characters with equal probabilities have 4.45")

    def test_ddp_hook(self):
        # PyTorch 1.13 with Python 3.11 needs --redirects and --tee.
        output = self.output_of("torch.distributed.run", "--standalone", "--nproc_per_node", "2", "--redirects", "1", "--tee", "1",
                                "examples/python/ddp_hook.py", "--epochs", "1", "--train_examples", "6400", "--push", "fp8_e5m2")
        accuracy = re.search(r"test accuracy (0\.\d+)", output)
        self.assertIsNotNone(accuracy, output)
        self.assertGreater(float(accuracy.group(1)), 0.65)


if __name__ == "__main__":
    unittest.main()
