"""Trains the character transformer as a pipeline: each worker is several processes that have some of the layers (docs/model_parallel.md).

    bazel build //python //server
    PYTHONPATH=bazel-bin/python torchrun --nproc_per_node 4 examples/python/pipeline.py --members 2 --push fp8_e5m2 --pull bf16

Four processes are two workers of two stages, and the first one starts the servers. With PyTorch 2.4 and newer, --schedule gpipe and
1f1b run the schedules of torch.distributed.pipelining; --schedule plain needs only send and recv.
"""

import argparse
import time

import torch
from torch import distributed, nn
from torch.nn import functional

import thinwire.torch as tw
from char_transformer import CONTEXT, load

WIDTH = 96


class Stage(nn.Module):
    """Some layers of the whole model, under their names there. The first stage has the embedding, the last one the output layer."""

    def __init__(self, codes, layers, number, count, heads=4):
        super().__init__()
        self.embed = nn.Embedding(codes, WIDTH) if number == 0 else None
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, WIDTH)) if number == 0 else None
        first, last = layers * number // count, layers * (number + 1) // count
        self.layers = nn.ModuleDict({
            str(i): nn.TransformerEncoderLayer(WIDTH, heads, 4 * WIDTH, dropout=0, activation="gelu", batch_first=True, norm_first=True)
            for i in range(first, last)})
        is_last = number == count - 1
        self.norm = nn.LayerNorm(WIDTH) if is_last else None
        self.output = nn.Linear(WIDTH, codes, bias=False) if is_last else None
        self.register_buffer("mask", torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1), persistent=False)

    def forward(self, x):
        """X: codes [batch, CONTEXT] in the first stage, else activations [batch, CONTEXT, WIDTH]."""
        if self.embed is not None:
            x = self.embed(x) + self.position
        for layer in self.layers.values():
            x = layer(x, self.mask)
        return x if self.output is None else self.output(self.norm(x))


def loss_of(scores, targets):
    return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())


class PlainPipeline:
    """All micro-batches forward, then all backward (Huang et al. 2019, GPipe), with send and recv."""

    def __init__(self, stage, group, micro_batches):
        self.stage, self.micro_batches = stage, micro_batches
        number, count = distributed.get_rank(group), distributed.get_world_size(group)
        rank = distributed.get_rank()
        self.before = rank - 1 if number > 0 else None
        self.after = rank + 1 if number < count - 1 else None

    def step(self, x, targets):
        """Returns the mean loss in the last stage, else None."""
        passed, losses = [], []
        for part, target in zip(x.chunk(self.micro_batches), targets.chunk(self.micro_batches)):
            if self.before is not None:
                part = torch.empty(len(part), CONTEXT, WIDTH)
                distributed.recv(part, self.before)
                part.requires_grad_()
            result = self.stage(part)
            if self.after is not None:
                distributed.send(result.detach(), self.after)
            else:
                result = loss_of(result, target) / self.micro_batches
                losses.append(result.detach())
            passed.append((part, result))
        for part, result in passed:
            gradient = None
            if self.after is not None:
                gradient = torch.empty_like(result)
                distributed.recv(gradient, self.after)
            result.backward(gradient)
            if self.before is not None:
                distributed.send(part.grad, self.before)
        return sum(losses).item() if losses else None


class TorchPipeline:
    """A schedule of torch.distributed.pipelining."""

    def __init__(self, stage, group, micro_batches, schedule):
        from torch.distributed import pipelining

        self.number, self.count = distributed.get_rank(group), distributed.get_world_size(group)
        kinds = {"gpipe": pipelining.ScheduleGPipe, "1f1b": pipelining.Schedule1F1B}
        of_stage = pipelining.PipelineStage(stage, self.number, self.count, torch.device("cpu"), group=group)
        self.schedule = kinds[schedule](of_stage, micro_batches, loss_fn=loss_of)

    def step(self, x, targets):
        losses = []
        self.schedule.step(*([x] if self.number == 0 else []), **({"target": targets, "losses": losses} if self.is_last else {}))
        return torch.stack(losses).mean().item() if losses else None

    @property
    def is_last(self):
        return self.number == self.count - 1


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--members", type=int, default=2, help="the stages of a worker (default: 2)")
    parser.add_argument("--schedule", choices=("plain", "gpipe", "1f1b"), default="plain", help="(default: plain)")
    parser.add_argument("--micro_batches", type=int, default=4, help="the parts of a batch (default: 4)")
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--steps", type=int, default=300, help="the steps of every worker")
    parser.add_argument("--batch_size", type=int, default=16, help="windows of one worker in a step")
    parser.add_argument("--lr", type=float, default=2e-3, help="the learning rate of adamw")
    parser.add_argument("--push", default="fp32", help="the codec of gradients")
    parser.add_argument("--pull", default="fp32", help="the codec of parameters")
    args = parser.parse_args()

    distributed.init_process_group("gloo")
    tw.init(processes=args.members)
    group = tw.local_group()
    text, _, codes = load("/usr/share/common-licenses")
    torch.manual_seed(1 + distributed.get_rank(group))  # equal in all workers
    stage = Stage(codes, args.layers, distributed.get_rank(group), args.members)
    # A schedule calls backward for each micro-batch, so the gradients leave in step().
    optimizer = tw.DistributedOptimizer(stage, "adamw", lr=args.lr, weight_decay=0.1, schedule="cosine", steps=args.steps,
                                        examples=args.batch_size, members=group, overlap=False, push=args.push, pull=args.pull)
    if args.schedule == "plain":
        pipeline = PlainPipeline(stage, group, args.micro_batches)
    else:
        pipeline = TorchPipeline(stage, group, args.micro_batches, args.schedule)
    starts = torch.Generator().manual_seed(1000 + tw.rank())
    begin = time.monotonic()
    losses = []
    for _ in range(args.steps):
        first = torch.randint(0, len(text) - CONTEXT, (args.batch_size,), generator=starts)
        windows = torch.stack([text[i: i + CONTEXT + 1] for i in first])
        optimizer.zero_grad()
        losses.append(pipeline.step(windows[:, :-1], windows[:, 1:].contiguous()))
        optimizer.report(loss=losses[-1])
        optimizer.step()
    seconds = time.monotonic() - begin
    counters = optimizer.counters
    optimizer.close()
    distributed.destroy_process_group()
    print(f"worker {tw.rank()}: {sum(p.numel() for p in stage.parameters()):,} parameters here, "
          f"{1000 * seconds / args.steps:.1f} ms per step, pushed {counters['push_bytes_encoded'] / 1e6:.1f} MB")
    if losses[-1] is not None:
        print(f"worker {tw.rank()}: training loss {sum(losses[-10:]) / len(losses[-10:]):.4f}")


if __name__ == "__main__":
    main()
