"""Trains TorchScript modules that compute their loss (loss: script) with real processes.

Usage: loss_script_test.py THINWIRE CHAR_MODEL, where CHAR_MODEL is examples/char_model.py.

The reference is gradient descent in PyTorch on all examples at once. Two workers with batches of four take all seven examples in
one step: worker 0 four of them, worker 1 three. Equal parameters thus also show that workers count by their examples.
"""

import json
import os
import subprocess
import sys
import tempfile
import unittest

import torch
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import nn
from torch.nn import functional

CHAR_MODEL = sys.argv.pop()
THINWIRE = sys.argv.pop()
EXAMPLES = 7
RATE = 0.1


class Regression(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.output = nn.Linear(8, 2)

    def forward(self, x, y):
        return functional.mse_loss(self.output(torch.tanh(self.hidden(x.flatten(1)))), y)


class Characters(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 4)
        self.recurrent = nn.GRU(4, 6, batch_first=True)
        self.output = nn.Linear(6, 10)

    def forward(self, x, y):
        hidden, _ = self.recurrent(self.embed(x))
        return functional.cross_entropy(self.output(hidden).flatten(0, 1), y.flatten().long())


class NoTargets(nn.Module):
    def __init__(self):
        super().__init__()
        self.dense = nn.Linear(6, 2)

    def forward(self, x):
        return self.dense(x.flatten(1)).mean()


class Sum(Regression):
    def forward(self, x, y):
        return functional.mse_loss(self.output(torch.tanh(self.hidden(x.flatten(1)))), y, reduction="sum")


def regression_data(count, seed):
    generator = torch.Generator().manual_seed(seed)
    x = torch.rand([count, 2, 3], generator=generator)
    return {"x": x, "y": torch.stack([x.sum((1, 2)), x[:, 0, 0] - x[:, 1, 2]], 1)}


def character_data(count, seed, dtype=torch.int64):
    generator = torch.Generator().manual_seed(seed)
    starts = torch.randint(0, 10, [count, 1], generator=generator)
    text = (starts + 3 * torch.arange(6)) % 10
    return {"x": text[:, :-1].clone().to(dtype), "y": text[:, 1:].clone().to(dtype)}


class LossScriptTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def write(self, module, train, test):
        torch.jit.script(module).save(self.path("model.pt"))
        save_file(train, self.path("train.safetensors"))
        save_file(test, self.path("test.safetensors"))

    def start(self, *flags):
        command = [THINWIRE, "train", "--name", "loss", "--model", "torchscript", "--model_file", self.path("model.pt")]
        command += ["--loss", "script", "--dataset", "safetensors", "--data_dir", self.folder.name, "--device", "cpu"]
        command += ["--learning_rate", str(RATE), "--report", self.path("report.json"), *flags]
        return subprocess.run(command, capture_output=True, text=True, timeout=240)

    def train(self, *flags):
        """Trains the written model and returns the report. The model file is model.safetensors."""
        self.run_ = self.start("--output", self.path("model.safetensors"), *flags)
        self.assertEqual(self.run_.returncode, 0, self.run_.stderr)
        with open(self.path("report.json"), encoding="utf-8") as report:
            report = json.load(report)
        self.assertIsNone(report["final_test_accuracy"])
        self.assertTrue(all(row["test_accuracy"] is None for row in report["epoch_rows"]))
        return report

    def refusal(self, *flags):
        """Returns the error of a run that must fail at its start."""
        run = self.start(*flags)
        self.assertEqual(run.returncode, 78, run.stderr)
        return run.stderr

    def check_against_gradient_descent(self, make, train, test, *flags):
        torch.manual_seed(3)
        module = make()
        self.write(module, train, test)
        report = self.train("--workers", "2", "--servers", "2", "--epochs", "4", *flags)
        self.assertEqual(report["steps"], 4)
        losses = []
        for _ in range(4):
            module.zero_grad()
            loss = module(train["x"], train["y"])
            loss.backward()
            losses.append(loss.item())
            with torch.no_grad():
                for parameter in module.parameters():
                    parameter -= RATE * parameter.grad
        self.assertLess(losses[-1], losses[0])
        got = load_file(self.path("model.safetensors"))
        expected = module.state_dict()
        self.assertEqual(sorted(got), sorted(expected))
        for name, values in expected.items():
            self.assertLess((got[name] - values).abs().max().item(), 1e-5, name)
        with torch.no_grad():
            self.assertAlmostEqual(report["final_test_loss"], module(test["x"], test["y"]).item(), places=5)
        return report

    def test_regression_equals_gradient_descent(self):
        train, test = regression_data(EXAMPLES, 1), regression_data(5, 2)
        report = self.check_against_gradient_descent(Regression, train, test, "--batch_size", "4")
        self.assertIn("test accuracy            no accuracy (loss: script)\n", self.run_.stdout)
        self.assertIn(f"test loss                {report['final_test_loss']:.4f}\n", self.run_.stdout)
        with safe_open(self.path("model.safetensors"), "pt") as file:
            self.assertEqual(file.metadata()["test_loss"], f"{report['final_test_loss']:.4f}")
            self.assertNotIn("test_accuracy", file.metadata())
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write(f"task {{ model: torchscript model_file: '{self.path('model.pt')}' loss: script dataset: safetensors ")
            job.write(f"data_dir: '{self.folder.name}' device: 'cpu' }}")
        run = subprocess.run([THINWIRE, "evaluate", "--config", self.path("job.textproto"), "--model",
                              self.path("model.safetensors")], capture_output=True, text=True, timeout=60)
        self.assertEqual(run.stdout, f"test loss {report['final_test_loss']:.4f}\n", run.stderr)
        # The same batch in two passes, of which the second is smaller at worker 1.
        self.check_against_gradient_descent(Regression, train, test, "--batch_size", "2", "--accumulate", "2")

    def test_a_character_model_equals_gradient_descent(self):
        for dtype in (torch.int64, torch.int32):
            with self.subTest(dtype):
                train, test = character_data(EXAMPLES, 1, dtype), character_data(5, 2, dtype)
                self.check_against_gradient_descent(Characters, train, test, "--batch_size", "4")

    def test_every_mode_trains(self):
        torch.manual_seed(3)
        self.write(Regression(), regression_data(64, 1), regression_data(16, 2))
        before = Regression()
        with torch.no_grad():
            before.load_state_dict(torch.jit.load(self.path("model.pt")).state_dict())
            first = before(*regression_data(16, 2).values()).item()
        common = ["--workers", "2", "--batch_size", "4", "--epochs", "3"]
        for mode in (["--mode", "backup", "--backup", "1"], ["--mode", "ssp", "--slack", "2"], ["--mode", "async"],
                     ["--local_steps", "2", "--optimizer", "sgd", "--local_learning_rate", "0.1"],
                     ["--push", "fp8_e5m2", "--pull", "bf16", "--precision", "bf16"]):
            with self.subTest(mode):
                self.assertLess(self.train(*common, *mode)["final_test_loss"], 0.7 * first)

    def test_the_best_model_has_the_lowest_test_loss(self):
        self.write(Regression(), regression_data(64, 1), regression_data(16, 2))
        report = self.train("--batch_size", "1", "--epochs", "4", "--keep", "best", "--learning_rate", "0.4")
        losses = [row["test_loss"] for row in report["epoch_rows"]]
        self.assertEqual(losses[report["output_epoch"]], min(losses))
        self.assertEqual(report["final_test_loss"], min(losses))

    def test_wrong_modules_and_data_are_refused(self):
        data = regression_data(EXAMPLES, 1)
        self.write(NoTargets(), data, data)
        self.assertIn("forward: wrong number of arguments (expected 2, the examples and the targets, with loss: script, got 1: x)",
                      self.refusal())
        self.write(Sum(), data, data)
        self.assertIn("loss: script: a sum over the batch", self.refusal())
        self.write(Regression(), {"x": data["x"].long(), "y": data["y"]}, {"x": data["x"].long(), "y": data["y"]})
        self.assertIn("forward of x Long [2, 2, 3] and y Float [2, 2]: RuntimeError: ", self.refusal())
        self.write(Regression(), {"x": data["x"], "y": data["y"][:3]}, data)
        self.assertIn("y: wrong number of rows (expected 7, as x, got 3)", self.refusal())
        self.write(Regression(), {"x": data["x"], "z": data["y"]}, data)
        self.assertIn("missing tensors (expected x and y, got x, z)", self.refusal())
        self.write(Regression(), data, {"x": data["x"], "y": data["y"].long()})
        self.assertIn("y: test and training examples have different forms (expected F32 [2], got I64 [2])", self.refusal())

    def test_the_example_trains(self):
        subprocess.run([sys.executable, CHAR_MODEL, self.path("char")], check=True, timeout=120)
        job = self.path("char/job.textproto")
        check = subprocess.run([THINWIRE, "config", "check", job], capture_output=True, text=True, timeout=60)
        self.assertEqual(check.returncode, 0, check.stderr)
        command = [THINWIRE, "train", "--config", job, "--report", self.path("report.json")]
        run = subprocess.run(command, capture_output=True, text=True, timeout=240)
        self.assertEqual(run.returncode, 0, run.stderr)
        with open(self.path("report.json"), encoding="utf-8") as report:
            losses = [row["test_loss"] for row in json.load(report)["epoch_rows"]]
        self.assertEqual(len(losses), 4)
        self.assertEqual(losses, sorted(losses, reverse=True))
        self.assertLess(losses[-1], 3.75)  # below the entropy of the frequencies of the bytes, 4.57 bits

    def test_an_experiment_compares_losses(self):
        self.write(Regression(), regression_data(64, 1), regression_data(16, 2))
        task = f"model: torchscript model_file: '{self.path('model.pt')}' loss: script dataset: safetensors"
        with open(self.path("study.textproto"), "w", encoding="utf-8") as file:
            file.write(f"""name: "study" title: "Codecs" seeds: 1 target_loss: 100
                job {{ consistency {{ workers: 2 ordered_fold: true }} optimization {{ learning_rate: {RATE} }}
                       task {{ {task} data_dir: '{self.folder.name}' batch_size: 4 epochs: 2 }} }}
                axis {{ name: "codec" setting {{ name: "fp32" }}
                       setting {{ name: "fp8" job {{ compression {{ push: fp8_e5m2 }} }} }} }}
                figure {{ kind: time_to_accuracy }} figure {{ kind: frontier }} figure {{ kind: table }}
                claim {{ text: "fp32 is better." better: "codec=fp32" worse: "codec=fp8" }}""")
        def experiment(*arguments):
            run = subprocess.run([THINWIRE, "experiment", *arguments], capture_output=True, text=True, timeout=240)
            self.assertEqual(run.returncode, 0, run.stderr)
            return run.stdout
        for arguments in (["virtual"], ["real", "--real"]):
            experiment("run", self.path("study.textproto"), "--out", self.path(arguments[0]), *arguments[1:])
        with open(self.path("virtual/report.html"), encoding="utf-8") as report:
            page = report.read()
        self.assertIn("has the lowest final test loss", page)
        self.assertNotIn("nan", page.split("How to read")[0].split("<h1>")[1])
        rows = experiment("compare", self.path("virtual"), self.path("real")).splitlines()
        self.assertIn("virtual loss", rows[0])
        for row in rows[1:]:
            self.assertIn("+0.0000", row.replace("-0.0000", "+0.0000"))
            self.assertTrue(row.endswith("1 of 1"), row)  # equal parameters
        self.assertEqual(len(rows), 3)


if __name__ == "__main__":
    unittest.main()
