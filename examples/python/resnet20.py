"""Trains ResNet-20 (He et al. 2016) on Fashion-MNIST with thinwire's servers, with bf16 activations on request (docs/python.md).

    bazel build //python //server //cli:thinwire
    bazel-bin/cli/thinwire launch --workers 2 --servers 2 examples/python/resnet20.py --push fp8_e5m2 --pull bf16 --bf16

The statistics of batch normalization stay local to the workers; worker 0 measures the accuracy with its own.
"""

import argparse
import math
import pathlib
import sys
import time

import torch
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import thinwire.torch as tw
from fashion_mnist import accuracy, load

sys.path.append(str(pathlib.Path(__file__).resolve().parents[1]))
from models import Resnet20  # noqa: E402


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32, help="examples of one worker in a step")
    parser.add_argument("--lr", type=float, default=0.1)
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    parser.add_argument("--pull", default="fp32", help="the codec of parameters")
    parser.add_argument("--bf16", action="store_true", help="computes the layers in bf16 (autocast)")
    parser.add_argument("--train_examples", type=int, default=6400, help="the number of training examples that are used")
    parser.add_argument("--test_examples", type=int, default=2000, help="the number of test examples that are used")
    parser.add_argument("--data_dir", default="/usr/share/datasets/fashion-mnist")
    args = parser.parse_args()

    data = TensorDataset(*(part[: args.train_examples] for part in load(args.data_dir, "train")))
    torch.manual_seed(1)  # all workers begin with the same model
    model = Resnet20([1, 28, 28], 10)
    tw.init()
    sampler = tw.ElasticSampler(data, args.batch_size)
    steps = args.epochs * math.ceil(len(data) / (args.batch_size * tw.world_size()))
    optimizer = tw.DistributedOptimizer(model, "momentum", lr=args.lr, weight_decay=1e-4, schedule="cosine", steps=steps,
                                        sampler=sampler, push=args.push, pull=args.pull)
    loader = DataLoader(data, batch_sampler=sampler)
    begin = time.monotonic()
    for epoch in sampler.epochs(args.epochs):
        for images, labels in loader:
            optimizer.zero_grad()
            with torch.autocast("cpu", torch.bfloat16, enabled=args.bf16):
                loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
        print(f"epoch {epoch}, step {optimizer.step_number}, loss {loss.item():.3f}", flush=True)
    print(f"{optimizer.step_number} steps, {1000 * (time.monotonic() - begin) / optimizer.step_number:.0f} ms per step")
    optimizer.close()
    if tw.rank() == 0:
        images, labels = (part[: args.test_examples] for part in load(args.data_dir, "t10k"))
        print(f"test accuracy {accuracy(model, images, labels):.4f}")


if __name__ == "__main__":
    main()
