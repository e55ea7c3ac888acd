"""Loads model files of `thinwire train --output` into PyTorch modules and compares their results with the report.

Usage: model_load_test.py THINWIRE MODELS, where MODELS is examples/models.py.
"""

import importlib.util
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

MODELS_FILE = sys.argv.pop()
THINWIRE = sys.argv.pop()
SHAPE = [1, 8, 8]
CLASSES = 3


def load_models():
    spec = importlib.util.spec_from_file_location("models", MODELS_FILE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.MODELS


def examples(count, seed):
    generator = torch.Generator().manual_seed(seed)
    y = torch.arange(count) % CLASSES
    x = torch.rand([count, *SHAPE], generator=generator)
    for i in range(count):
        x[i, 0, int(y[i]) * 2 : int(y[i]) * 2 + 2] += 0.4
    return {"x": x, "y": y}


class Normalized(nn.Module):
    """A model with batch normalization, a frozen parameter, and buffers of several types."""

    def __init__(self):
        super().__init__()
        self.conv = nn.Conv2d(1, 4, 3)
        self.bn = nn.BatchNorm2d(4)
        self.dense = nn.Linear(4 * 36, CLASSES)
        self.frozen = nn.Parameter(torch.full([CLASSES], 2.0), requires_grad=False)
        self.register_buffer("steps", torch.zeros([], dtype=torch.int32))
        self.register_buffer("mask", torch.tensor([True, False, True, True]))
        self.register_buffer("scale", torch.tensor([0.5], dtype=torch.float64))

    def forward(self, x):
        if self.training:
            self.steps += 1
        x = torch.relu(self.bn(self.conv(x))) * self.mask.view(1, 4, 1, 1)
        return self.dense(x.flatten(1)) * self.frozen * self.scale.to(torch.float32)


class Tied(nn.Module):
    """A model whose second and third layer share their weights."""

    def __init__(self):
        super().__init__()
        self.first = nn.Linear(64, 16)
        self.second = nn.Linear(16, 16)
        self.third = nn.Linear(16, 16)
        self.third.weight = self.second.weight
        self.last = nn.Linear(16, CLASSES)

    def forward(self, x):
        x = torch.relu(self.first(x.flatten(1)))
        return self.last(torch.relu(self.third(torch.relu(self.second(x)))))


class ModelLoadTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        save_file(examples(60, 1), self.path("train.safetensors"))
        self.test = examples(48, 2)
        save_file(self.test, self.path("test.safetensors"))

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def train(self, model, *flags):
        """Trains MODEL and returns the report. The model file is model.safetensors."""
        command = [THINWIRE, "train", "--name", "load", "--workers", "1", "--model", model, "--dataset", "safetensors"]
        command += ["--data_dir", self.folder.name, "--batch_size", "10", "--epochs", "2", "--device", "cpu"]
        command += ["--learning_rate", "0.05", "--report", self.path("report.json")]
        command += ["--output", self.path("model.safetensors"), *flags]
        subprocess.run(command, check=True, capture_output=True, timeout=120)
        with open(self.path("report.json"), encoding="utf-8") as report:
            return json.load(report)

    def check(self, module, report):
        """Loads the model file into MODULE and compares its results with the report."""
        module.load_state_dict(load_file(self.path("model.safetensors")))
        module.eval()
        with torch.no_grad():
            logits = module(self.test["x"])
        correct = (logits.argmax(1) == self.test["y"]).sum().item()
        loss = nn.functional.cross_entropy(logits, self.test["y"]).item()
        self.assertEqual(correct, round(report["final_test_accuracy"] * len(self.test["y"])))
        self.assertAlmostEqual(loss, report["final_test_loss"], places=4)

    def test_every_built_in_model_loads(self):
        models = load_models()
        self.assertEqual(sorted(models), ["cnn", "mlp", "resnet20", "softmax"])
        for name, make in models.items():
            with self.subTest(name):
                self.check(make(SHAPE, CLASSES), self.train(name))

    def test_a_torchscript_model_loads(self):
        torch.jit.script(Normalized()).save(self.path("normalized.pt"))
        report = self.train("torchscript", "--model_file", self.path("normalized.pt"))
        self.check(torch.jit.load(self.path("normalized.pt")), report)
        self.check(Normalized(), report)
        tensors = load_file(self.path("model.safetensors"))
        self.assertEqual(tensors["steps"].item(), 12)
        self.assertEqual(tensors["bn.num_batches_tracked"].item(), 12)
        self.assertEqual(tensors["mask"].tolist(), [True, False, True, True])
        self.assertEqual(tensors["scale"].dtype, torch.float64)

    def test_tied_weights_are_one_tensor_with_two_names(self):
        torch.jit.script(Tied()).save(self.path("tied.pt"))
        report = self.train("torchscript", "--model_file", self.path("tied.pt"))
        # Of 12 steps in fp32: without the second weight of 16x16 values.
        values = sum(p.numel() for p in Tied().parameters())
        self.assertEqual(report["push_bytes_raw"], 12 * values * 4)
        tensors = load_file(self.path("model.safetensors"))
        self.assertTrue(torch.equal(tensors["second.weight"], tensors["third.weight"]))
        self.check(Tied(), report)
        self.check(torch.jit.load(self.path("tied.pt")), report)
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write(f"task {{ model: torchscript model_file: '{self.path('tied.pt')}' dataset: safetensors ")
            job.write(f"data_dir: '{self.folder.name}' device: 'cpu' }}")
        evaluate = [THINWIRE, "evaluate", "--config", self.path("job.textproto"), "--model"]
        run = subprocess.run(evaluate + [self.path("model.safetensors")], capture_output=True, text=True, timeout=60)
        self.assertIn(f"test accuracy {report['final_test_accuracy']:.4f}", run.stdout, run.stderr)
        tensors["third.weight"] = tensors["third.weight"] + 1
        save_file(tensors, self.path("untied.safetensors"))
        run = subprocess.run(evaluate + [self.path("untied.safetensors")], capture_output=True, text=True, timeout=60)
        self.assertIn('tensor "third.weight": wrong values (expected those of "second.weight"', run.stderr)

    def test_the_metadata_describe_the_run(self):
        report = self.train("softmax")
        with safe_open(self.path("model.safetensors"), "pt") as file:
            metadata = file.metadata()
        self.assertEqual(metadata["format"], "pt")
        self.assertEqual(metadata["job"], "load")
        self.assertEqual(metadata["steps"], "12")
        self.assertEqual(metadata["test_accuracy"], f"{report['final_test_accuracy']:.4f}")


if __name__ == "__main__":
    unittest.main()
