#!/usr/bin/env python3
"""Trains thinwire's model `cnn` in PyTorch, as one of the processes of bench/versus_ddp.sh.

The gradients are averaged by DistributedDataParallel, with one of its hooks or that of thinwire (GradientAverage), or thinwire's
servers update the parameters (DistributedOptimizer); both read the job file in THINWIRE_CONFIG. With the method diloco, each process
takes local steps of plain gradient descent, and torchft's DiLoCo averages their differences and applies Nesterov's momentum.

Initial values, the order of the examples, the batches, the schedule and the optimizer are those of thinwire
(worker/models/layers.cc, worker/batches/sampler.cc, server/core/optimizer): both systems see the same numbers. Rank 0 prints one
JSON line per epoch and one at the end. Seconds exclude the tests and begin when all processes are connected; torchft's processes
connect in their first exchange.
"""

import argparse
import contextlib
import datetime
import gzip
import json
import math
import os
import statistics
import sys
import time

import numpy
import torch
import torch.distributed
from torch.distributed.algorithms.ddp_comm_hooks import default_hooks, powerSGD_hook
from torch.nn import functional

MASK = (1 << 64) - 1
METHODS = ("ddp", "ddp_fp16", "ddp_powersgd_1", "ddp_powersgd_2", "diloco", "hook", "python")


class Mt19937_64:
    """The generator std::mt19937_64 (Matsumoto and Nishimura 2000), from a number or from a list of 32-bit numbers."""

    N, M = 312, 156

    def __init__(self, seed):
        if isinstance(seed, int):
            self.state = [seed & MASK]
            for i in range(1, self.N):
                last = self.state[-1]
                self.state.append((6364136223846793005 * (last ^ (last >> 62)) + i) & MASK)
        else:
            words = seed_sequence(seed, 2 * self.N)
            self.state = [words[2 * i] | words[2 * i + 1] << 32 for i in range(self.N)]
        self.next = self.N

    def draw(self):
        """Returns the next 64 random bits."""
        if self.next == self.N:
            state = self.state
            for i in range(self.N):
                y = (state[i] & 0xFFFFFFFF80000000) | (state[(i + 1) % self.N] & 0x7FFFFFFF)
                state[i] = state[(i + self.M) % self.N] ^ (y >> 1) ^ (0xB5026F5AA96619E9 if y & 1 else 0)
            self.next = 0
        y = self.state[self.next]
        self.next += 1
        y ^= (y >> 29) & 0x5555555555555555
        y ^= (y << 17) & 0x71D67FFFEDA60000
        y ^= (y << 37) & 0xFFF7EEE000000000
        return y ^ (y >> 43)


def seed_sequence(seed, count):
    """Returns COUNT 32-bit numbers, as std::seed_seq of SEED generates them (C++ standard, rand.util.seedseq)."""
    low = 0xFFFFFFFF
    out = [0x8B8B8B8B] * count
    size = len(seed)
    t = 11 if count >= 623 else 7 if count >= 68 else 5 if count >= 39 else 3 if count >= 7 else (count - 1) // 2
    p = (count - t) // 2
    q = p + t
    rounds = max(size + 1, count)
    mix = lambda x: (x ^ (x >> 27)) & low
    for k in range(rounds):
        i, j, last = k % count, (k + p) % count, (k - 1) % count
        first = 1664525 * mix(out[i] ^ out[j] ^ out[last]) & low
        second = (first + (size if k == 0 else k % count + seed[k - 1] if k <= size else k % count)) & low
        out[j] = (out[j] + first) & low
        out[(k + q) % count] = (out[(k + q) % count] + second) & low
        out[i] = second
    for k in range(rounds, rounds + count):
        i, j, last = k % count, (k + p) % count, (k - 1) % count
        first = 1566083941 * mix((out[i] + out[j] + out[last]) & low) & low
        second = (first - k % count) & low
        out[j] ^= first
        out[(k + q) % count] ^= second
        out[i] = second
    return out


def permutation(seed, epoch, count):
    """Returns the order of COUNT examples in EPOCH (worker/batches/sampler.cc)."""
    low = 0xFFFFFFFF
    random = Mt19937_64([seed & low, seed >> 32, epoch & low, epoch >> 32])
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = random.draw() % (i + 1)
        order[i], order[j] = order[j], order[i]
    return numpy.array(order)


class Cnn(torch.nn.Module):
    """The model `cnn` of docs/models.md."""

    def __init__(self, seed):
        super().__init__()
        self.conv1 = torch.nn.Conv2d(1, 16, 5, padding=2)
        self.conv2 = torch.nn.Conv2d(16, 32, 5, padding=2)
        self.dense1 = torch.nn.Linear(32 * 7 * 7, 128)
        self.dense2 = torch.nn.Linear(128, 10)
        random = Mt19937_64(seed)
        with torch.no_grad():
            for layer in (self.conv1, self.conv2, self.dense1, self.dense2):
                bound = 1 / math.sqrt(layer.weight[0].numel())
                for values in (layer.weight, layer.bias):
                    drawn = [bound * (2 * ((random.draw() >> 11) * 2.0**-53) - 1) for _ in range(values.numel())]
                    values.copy_(torch.tensor(drawn, dtype=torch.float64).float().reshape(values.shape))

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        return self.dense2(functional.relu(self.dense1(x.flatten(1))))


def read_part(folder, part):
    """Returns the images [n, 1, 28, 28], normalized as in worker/datasets/idx.cc, and the labels of PART."""
    with gzip.open(os.path.join(folder, part + "-images-idx3-ubyte.gz")) as f:
        pixels = numpy.frombuffer(f.read(), numpy.uint8, offset=16).reshape(-1, 1, 28, 28)
    with gzip.open(os.path.join(folder, part + "-labels-idx1-ubyte.gz")) as f:
        labels = numpy.frombuffer(f.read(), numpy.uint8, offset=8)
    return (pixels.astype(numpy.float32) / 255 - 0.2860) / 0.3530, labels.astype(numpy.int64)


def accuracy(model, images, labels):
    """Returns the part of the examples, 0 to 1, that MODEL classifies correctly."""
    correct = 0
    with torch.no_grad():
        for begin in range(0, len(labels), 1000):
            logits = model(torch.from_numpy(images[begin : begin + 1000]))
            correct += int((logits.argmax(1) == torch.from_numpy(labels[begin : begin + 1000])).sum())
    return correct / len(labels)


def distributed(model, args, steps):
    """Returns what to call in place of MODEL, and its optimizer. STEPS is the number of steps of the run."""
    if args.method in ("hook", "python"):
        import thinwire.torch as tw

        tw.init(worker=args.rank)
    if args.method == "python":
        return model, tw.DistributedOptimizer(model, steps=steps, examples=args.batch_size)
    parallel = torch.nn.parallel.DistributedDataParallel(model)
    if args.method == "ddp_fp16":
        parallel.register_comm_hook(None, default_hooks.fp16_compress_hook)
    elif args.method.startswith("ddp_powersgd_"):
        state = powerSGD_hook.PowerSGDState(
            process_group=None, matrix_approximation_rank=int(args.method[-1]), start_powerSGD_iter=10
        )
        parallel.register_comm_hook(state, powerSGD_hook.powerSGD_hook)
    elif args.method == "hook":
        parallel.register_comm_hook(tw.GradientAverage(parallel), tw.average_hook)
    return parallel, torch.optim.SGD(parallel.parameters(), lr=args.learning_rate, momentum=args.momentum)


@contextlib.contextmanager
def diloco(model, args):
    """Yields the optimizer of the local steps. After every --local_steps / --fragments of its steps, a fragment is exchanged."""
    import torchft
    from torchft.coordination import LighthouseServer
    from torchft.local_sgd import DiLoCo

    lead, port = args.address.rsplit(":", 1)
    port = int(port) + 1
    lighthouse = LighthouseServer(bind=f"0.0.0.0:{port}", min_replicas=args.workers) if args.rank == 0 else None
    store = torch.distributed.TCPStore(args.host, 0, is_master=True, wait_for_workers=False)
    patience = datetime.timedelta(seconds=300)
    inner = torch.optim.SGD(model.parameters(), lr=args.learning_rate)
    manager = torchft.Manager(
        pg=torchft.ProcessGroupGloo(timeout=patience),
        load_state_dict=None,
        state_dict=None,
        min_replica_size=args.workers,
        use_async_quorum=False,
        timeout=patience,
        quorum_timeout=patience,
        rank=0,
        world_size=1,
        store_addr=args.host,
        store_port=store.port,
        lighthouse_addr=f"http://{lead}:{port}",
        replica_id=f"worker_{args.rank}",
        hostname=args.host,
        init_sync=False,  # all processes have the same initial values
    )
    # Fragments are modules. Nearly all values are in dense1, so no division into modules is even.
    small = torch.nn.ModuleList([model.conv1, model.conv2, model.dense2])
    fragments = {1: [model], 2: [small, model.dense1]}[args.fragments]
    rates = {"lr": args.outer_learning_rate, "momentum": args.momentum, "nesterov": True}
    try:
        with DiLoCo(
            manager,
            fragments,
            inner,
            [torch.optim.SGD(fragment.parameters(), **rates) for fragment in fragments],
            sync_every=args.local_steps,
            pin_memory=False,
            fragment_sync_delay=args.overlap_steps,
            fragment_update_alpha=0.5 if args.overlap_steps else 0.0,
        ):
            yield inner
    finally:
        torch.distributed.barrier()
        manager.shutdown(wait=False)
        if lighthouse is not None:
            lighthouse.shutdown()


def train(args, model, parallel, optimizer, orders, images, labels, test_images, test_labels):
    """Trains PARALLEL, which has the parameters of MODEL, once with each order of ORDERS, and prints the results."""
    count = len(orders[0])
    planned = count * len(orders)
    steps = math.ceil(math.ceil(count / args.workers) / args.batch_size)
    examples, seconds, durations = 0, 0.0, []
    for epoch, order in enumerate(orders):
        for step in range(steps):
            begin = time.monotonic()
            taken = order[step * args.batch_size * args.workers :][: args.batch_size * args.workers]
            own = taken[args.rank :: args.workers]
            if args.method != "diloco":  # the rate of local steps is constant
                rate = args.learning_rate * (1 + math.cos(math.pi * examples / planned)) / 2
                for group in optimizer.param_groups:
                    group["lr"] = rate
            optimizer.zero_grad()
            loss = functional.cross_entropy(
                parallel(torch.from_numpy(images[own])), torch.from_numpy(labels[own])
            )
            loss.backward()
            optimizer.step()
            examples += len(taken)
            durations.append(time.monotonic() - begin)
        seconds = sum(durations)
        if args.rank == 0:
            result = accuracy(model, test_images, test_labels)
            print(json.dumps({"epoch": epoch, "seconds": seconds, "accuracy": result}), flush=True)
        torch.distributed.barrier()
    if args.rank == 0:
        print(json.dumps({"median_step_seconds": statistics.median(durations), "seconds": seconds}), flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--rank", type=int, required=True)
    parser.add_argument("--workers", type=int, required=True)
    parser.add_argument("--address", required=True, help="HOST:PORT of rank 0")
    parser.add_argument("--method", choices=METHODS, default="ddp")
    parser.add_argument("--data_dir", required=True)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=1)
    parser.add_argument("--batch_size", type=int, default=32)
    parser.add_argument("--train_examples", type=int, default=60000)
    parser.add_argument("--learning_rate", type=float, default=0.05)
    parser.add_argument("--momentum", type=float, default=0.9)
    parser.add_argument("--host", help="the address of this process; method diloco")
    parser.add_argument("--local_steps", type=int, default=1)
    parser.add_argument("--fragments", type=int, default=1, choices=(1, 2))
    parser.add_argument("--overlap_steps", type=int, default=0)
    parser.add_argument("--outer_learning_rate", type=float, default=0.7)
    args = parser.parse_args()

    torch.set_num_threads(1)
    torch.manual_seed(args.seed)
    images, labels = read_part(args.data_dir, "train")
    test_images, test_labels = read_part(args.data_dir, "t10k")
    count = min(args.train_examples, len(labels))
    model = Cnn(args.seed)
    orders = [permutation(args.seed, epoch, count) for epoch in range(args.epochs)]
    torch.distributed.init_process_group(
        "gloo", init_method="tcp://" + args.address, rank=args.rank, world_size=args.workers
    )
    steps = math.ceil(math.ceil(count / args.workers) / args.batch_size)
    with contextlib.ExitStack() as stack:
        if args.method == "diloco":
            parallel, optimizer = model, stack.enter_context(diloco(model, args))
        else:
            parallel, optimizer = distributed(model, args, steps * args.epochs)
        torch.distributed.barrier()
        train(args, model, parallel, optimizer, orders, images, labels, test_images, test_labels)
    torch.distributed.destroy_process_group()


if __name__ == "__main__":
    sys.exit(main())
