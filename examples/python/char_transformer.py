"""Trains a small character transformer on the license texts of Debian with thinwire's servers (docs/python.md).

    bazel build //python //server //cli:thinwire
    bazel-bin/cli/thinwire launch --workers 2 --servers 1 examples/python/char_transformer.py --push fp8_e5m2 --pull bf16
    bazel-bin/cli/thinwire launch --workers 2 --servers 1 examples/python/char_transformer.py --every 16    # DiLoCo

The text is /usr/share/common-licenses of the Debian package base-files, about 300,000 characters. The model predicts the next
character of a text; the last tenth of every license is for the test.
"""

import argparse
import pathlib
import time

import torch
from torch import nn
from torch.nn import functional

import thinwire.torch as tw

CONTEXT = 64  # characters that the model sees


def load(folder):
    """Returns the training text and the test text as tensors of character codes, and the number of codes."""
    files = sorted(p for p in pathlib.Path(folder).iterdir() if p.is_file() and not p.is_symlink())
    texts = [p.read_text(encoding="utf-8", errors="replace") for p in files]
    characters = sorted(set("".join(texts)))
    code = {c: i for i, c in enumerate(characters)}
    coded = [torch.tensor([code[c] for c in text]) for text in texts]
    return (torch.cat([t[: len(t) * 9 // 10] for t in coded]), torch.cat([t[len(t) * 9 // 10:] for t in coded]),
            len(characters))


class CharTransformer(nn.Module):
    """A decoder-only transformer. The embedding and the output layer share their weight."""

    def __init__(self, codes, width=96, layers=3, heads=4):
        super().__init__()
        self.embed = nn.Embedding(codes, width)
        self.position = nn.Parameter(0.02 * torch.randn(CONTEXT, width))
        layer = nn.TransformerEncoderLayer(width, heads, 4 * width, dropout=0, activation="gelu", batch_first=True, norm_first=True)
        self.layers = nn.TransformerEncoder(layer, layers, enable_nested_tensor=False)
        self.norm = nn.LayerNorm(width)
        self.output = nn.Linear(width, codes, bias=False)
        nn.init.normal_(self.embed.weight, std=0.02)
        self.output.weight = self.embed.weight
        self.register_buffer("mask", torch.triu(torch.full((CONTEXT, CONTEXT), float("-inf")), 1), persistent=False)

    def forward(self, x):
        """X: codes [batch, CONTEXT]. Returns the scores of the next codes [batch, CONTEXT, codes]."""
        return self.output(self.norm(self.layers(self.embed(x) + self.position, self.mask)))


def loss_of(model, windows):
    """WINDOWS: [batch, CONTEXT + 1]. Returns the mean loss in nats per character."""
    return functional.cross_entropy(model(windows[:, :-1]).flatten(0, 1), windows[:, 1:].flatten())


def test_loss(model, text):
    model.eval()
    windows = text.unfold(0, CONTEXT + 1, CONTEXT)
    with torch.no_grad():
        losses = [loss_of(model, part) * len(part) for part in windows.split(64)]
    return (sum(losses) / len(windows)).item()


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--steps", type=int, default=600, help="the steps of every worker")
    parser.add_argument("--batch_size", type=int, default=16, help="windows of one worker in a step")
    parser.add_argument("--lr", type=float, default=2e-3, help="the learning rate of adamw")
    parser.add_argument("--every", type=int, default=0,
                        help="local steps between two exchanges; 0: every step pushes its gradient (default: 0)")
    parser.add_argument("--push", default="fp32", help="the codec of gradients or differences")
    parser.add_argument("--pull", default="fp32", help="the codec of parameters")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--text_dir", default="/usr/share/common-licenses")
    args = parser.parse_args()

    train_text, test_text, codes = load(args.text_dir)
    torch.manual_seed(args.seed)  # all workers begin with the same model
    model = CharTransformer(codes)
    tw.init()
    settings = {"examples": args.batch_size, "push": args.push, "pull": args.pull}
    if args.every:
        inner = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.1)
        rates = torch.optim.lr_scheduler.CosineAnnealingLR(inner, args.steps)
        optimizer = tw.LocalSteps(model, inner, args.every, outer="nesterov", outer_lr=0.7, momentum=0.5, **settings)
    else:
        optimizer = tw.DistributedOptimizer(model, "adamw", lr=args.lr, weight_decay=0.1, schedule="cosine",
                                            steps=args.steps, **settings)

    starts = torch.Generator().manual_seed(1000 * args.seed + tw.rank())
    begin = time.monotonic()
    for _ in range(args.steps):
        first = torch.randint(0, len(train_text) - CONTEXT, (args.batch_size,), generator=starts)
        windows = torch.stack([train_text[i: i + CONTEXT + 1] for i in first])
        optimizer.zero_grad()
        loss_of(model, windows).backward()
        optimizer.step()
        if args.every:
            rates.step()
    if args.every and optimizer.local_steps:
        optimizer.sync()
    seconds = time.monotonic() - begin
    counters = optimizer.counters
    optimizer.close()
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters, {args.steps} steps in {seconds:.1f} s, "
          f"{1000 * seconds / args.steps:.1f} ms per step")
    print(f"pushed {counters['push_bytes_encoded'] / 1e6:.1f} MB, pulled {counters['pull_bytes_encoded'] / 1e6:.1f} MB")
    if tw.rank() == 0:
        print(f"test loss {test_loss(model, test_text):.4f}")


if __name__ == "__main__":
    main()
