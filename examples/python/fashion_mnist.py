"""Trains a CNN on Fashion-MNIST with thinwire's servers (docs/python.md).

    bazel build //python //server //cli:thinwire
    bazel-bin/cli/thinwire launch --workers 2 --servers 2 examples/python/fashion_mnist.py --push fp8_e5m2 --pull bf16

The data are those of the Debian package dataset-fashion-mnist.
"""

import argparse
import copy
import gzip
import math
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional
from torch.utils.data import DataLoader, TensorDataset

import thinwire.torch as tw


def read(folder, name, header_bytes):
    with gzip.open(pathlib.Path(folder) / f"{name}.gz") as file:
        return torch.frombuffer(bytearray(file.read()[header_bytes:]), dtype=torch.uint8)


def load(folder, part):
    """Returns normalized images [n, 1, 28, 28] and their classes [n]."""
    images = read(folder, f"{part}-images-idx3-ubyte", 16).view(-1, 1, 28, 28)
    return (images.float() / 255 - 0.2860) / 0.3530, read(folder, f"{part}-labels-idx1-ubyte", 8).long()


def make_model():
    return nn.Sequential(
        nn.Conv2d(1, 16, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 7 * 7, 128), nn.ReLU(), nn.Linear(128, 10),
    )


def accuracy(model, images, labels):
    model.eval()
    with torch.no_grad():
        right = sum((model(x).argmax(1) == y).sum().item() for x, y in zip(images.split(500), labels.split(500)))
    return right / len(labels)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32, help="examples of one worker in a step")
    parser.add_argument("--lr", type=float, default=0.06)
    parser.add_argument("--mode", default="sync", help="sync, backup, ssp or async")
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    parser.add_argument("--pull", default="fp32", help="the codec of parameters")
    parser.add_argument("--train_examples", type=int, default=60000, help="the number of training examples that are used")
    parser.add_argument("--data_dir", default="/usr/share/datasets/fashion-mnist")
    args = parser.parse_args()

    data = TensorDataset(*(part[: args.train_examples] for part in load(args.data_dir, "train")))
    torch.manual_seed(1)  # all workers begin with the same model
    model = make_model()

    tw.init()
    steps = args.epochs * math.ceil(len(data) / (args.batch_size * tw.world_size()))
    sampler = tw.ElasticSampler(data, args.batch_size)
    optimizer = tw.DistributedOptimizer(
        model, "momentum", lr=args.lr, weight_decay=1e-4, schedule="cosine", warmup=0.05, steps=steps,
        sampler=sampler, mode=args.mode, push=args.push, pull=args.pull)
    loader = DataLoader(data, batch_sampler=sampler)

    begin = time.monotonic()
    first_step = optimizer.step_number
    for epoch in sampler.epochs(args.epochs):
        for images, labels in loader:
            step = optimizer.step_number
            optimizer.zero_grad()
            loss = functional.cross_entropy(model(images), labels)
            loss.backward()
            optimizer.step()
            if step % 100 == 0:
                print(f"epoch {epoch}, step {step}, loss {loss.item():.3f}", flush=True)
    seconds = time.monotonic() - begin
    count = optimizer.step_number - first_step
    print(f"{count} steps in {seconds:.1f} s, {1000 * seconds / max(1, count):.2f} ms per step")

    if tw.rank() == 0:
        # The servers' parameters are exact; those of the model went through the codec of `pull`.
        trained = copy.deepcopy(model)
        trained.load_state_dict(optimizer.exact_parameters(), strict=False)
        counters = optimizer.counters
        print(f"pushed {counters['push_bytes_encoded'] / 1e6:.1f} MB, pulled {counters['pull_bytes_encoded'] / 1e6:.1f} MB")
        print(f"test accuracy {accuracy(trained, *load(args.data_dir, 't10k')):.4f}")
    optimizer.close()


if __name__ == "__main__":
    main()
