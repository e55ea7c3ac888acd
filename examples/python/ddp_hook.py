"""Trains with DistributedDataParallel, whose gradients thinwire's servers average in place of all-reduce (docs/python.md).

    bazel build //python //server
    PYTHONPATH=bazel-bin/python torchrun --nproc_per_node 2 --redirects 1 --tee 1 examples/python/ddp_hook.py --push fp8_e5m2

The lines with `tw.` are all that thinwire adds to a script for DistributedDataParallel. Model and data: fashion_mnist.py.
"""

import argparse

import torch
import torch.distributed
from torch.nn import functional
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

import thinwire.torch as tw
from fashion_mnist import accuracy, load, make_model


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch_size", type=int, default=32, help="examples of one worker in a step")
    parser.add_argument("--lr", type=float, default=1e-3, help="the learning rate of AdamW")
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    parser.add_argument("--pull", default="fp32", help="the codec of mean gradients")
    parser.add_argument("--train_examples", type=int, default=60000, help="the number of training examples that are used")
    parser.add_argument("--data_dir", default="/usr/share/datasets/fashion-mnist")
    args = parser.parse_args()

    torch.distributed.init_process_group("gloo")
    tw.init()
    data = TensorDataset(*(part[: args.train_examples] for part in load(args.data_dir, "train")))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, args.batch_size, sampler=sampler)

    model = make_model()
    ddp = DistributedDataParallel(model)  # all workers get the parameters of worker 0
    state = tw.GradientAverage(ddp, push=args.push, pull=args.pull)
    ddp.register_comm_hook(state, tw.average_hook)
    optimizer = torch.optim.AdamW(ddp.parameters(), args.lr)

    for epoch in range(args.epochs):
        sampler.set_epoch(epoch)
        for images, labels in loader:
            optimizer.zero_grad()
            loss = functional.cross_entropy(ddp(images), labels)
            loss.backward()
            optimizer.step()
        if tw.rank() == 0:
            print(f"epoch {epoch}, {state.step_number} steps, loss {loss.item():.3f}", flush=True)
    pushed = state.counters["push_bytes_encoded"]
    state.close()
    if tw.rank() == 0:
        print(f"pushed {pushed / 1e6:.1f} MB")
        print(f"test accuracy {accuracy(model, *load(args.data_dir, 't10k')):.4f}")


if __name__ == "__main__":
    main()
