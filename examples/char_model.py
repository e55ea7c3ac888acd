"""Makes the files of a job that trains a model of bytes of text without Python (docs/losses.md).

    python3 examples/char_model.py char
    bazel-bin/cli/thinwire train --config char/job.textproto --output char/trained.safetensors

The module computes the loss itself, so the job has loss: script. x and y are windows of codes of bytes; y is x one byte later.
The text is /usr/share/common-licenses/GPL-3 of the Debian package base-files, unless --text names another. The last tenth of each
file is for the test. In training, the loss is the cross entropy; in a test, it is in bits per byte.
"""

import argparse
import math
import pathlib

import torch
from safetensors.torch import save_file
from torch import nn
from torch.nn import functional

JOB = """name: "char"
servers: 1
consistency {{ workers: 2 ordered_fold: true }}
optimization {{ optimizer: adam learning_rate: 0.005 }}
compression {{ push: fp8_e5m2 pull: bf16 }}
task {{
  model: torchscript
  model_file: "{folder}/model.pt"
  loss: script
  dataset: safetensors
  data_dir: "{folder}"
  batch_size: 8
  epochs: 4
  device: "cpu"
}}
"""


class Gru(nn.Module):
    """A recurrent network of one layer."""

    def __init__(self, codes: int, width: int):
        super().__init__()
        self.embed = nn.Embedding(codes, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, codes)

    def forward(self, x):
        hidden, _ = self.recurrent(self.embed(x))
        return self.output(hidden)


class Block(nn.Module):
    """A layer of a decoder-only transformer, with the norms before attention and feed-forward network."""

    def __init__(self, context: int, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.project = nn.Linear(width, width)
        self.grow, self.shrink = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.register_buffer("mask", torch.triu(torch.full((context, context), float("-inf")), 1))

    def forward(self, x):
        n, length, width = x.shape
        parts = self.query_key_value(self.norm1(x)).view(n, length, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        scores = parts[0] @ parts[1].transpose(-2, -1) / math.sqrt(width // self.heads)
        seen = torch.softmax(scores + self.mask[:length, :length], -1) @ parts[2]
        x = x + self.project(seen.transpose(1, 2).reshape(n, length, width))
        return x + self.shrink(functional.gelu(self.grow(self.norm2(x))))


class Transformer(nn.Module):
    """A decoder-only transformer (Radford et al. 2019). The embedding is the output layer, too."""

    def __init__(self, codes: int, context: int, width: int, layers: int = 3, heads: int = 4):
        super().__init__()
        self.embed = nn.Parameter(0.02 * torch.randn(codes, width))
        self.position = nn.Parameter(0.02 * torch.randn(context, width))
        self.blocks = nn.Sequential(*(Block(context, width, heads) for _ in range(layers)))
        self.norm = nn.LayerNorm(width)

    def forward(self, x):
        hidden = functional.embedding(x, self.embed) + self.position[:x.size(1)]
        return functional.linear(self.norm(self.blocks(hidden)), self.embed)


class WithLoss(nn.Module):
    def __init__(self, model):
        super().__init__()
        self.model = model

    def forward(self, x, y):
        """X, Y: codes [n, context]. Returns the mean loss: in nats, or in a test in bits per byte."""
        loss = functional.cross_entropy(self.model(x).flatten(0, 1), y.flatten())
        return loss if self.training else loss / math.log(2)


def windows_of(texts, context):
    """Returns the windows of the texts, as x and y [n, context]."""
    windows = torch.cat([text.unfold(0, context + 1, context) for text in texts if len(text) > context])
    return {"x": windows[:, :-1].clone(), "y": windows[:, 1:].clone()}


def texts_in(path):
    """Returns the bytes of the file PATH, or of the files of text in the folder PATH."""
    files = [path] if path.is_file() else sorted(p for p in path.iterdir() if p.is_file() and not p.is_symlink() and not p.suffix)
    return [file.read_bytes() for file in files]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder that gets the files")
    parser.add_argument("--text", type=pathlib.Path, default="/usr/share/common-licenses/GPL-3",
                        help="a text file, or a folder whose files without a suffix are texts")
    parser.add_argument("--context", type=int, default=32, help="bytes in a window")
    parser.add_argument("--model", choices=("gru", "transformer"), default="gru")
    parser.add_argument("--width", type=int, default=48, help="values of a byte's vector")
    args = parser.parse_args()
    texts = texts_in(args.text)
    code = {byte: i for i, byte in enumerate(sorted(set(b"".join(texts))))}
    coded = [torch.tensor([code[byte] for byte in text]) for text in texts]
    args.folder.mkdir(parents=True, exist_ok=True)
    save_file(windows_of([text[:len(text) * 9 // 10] for text in coded], args.context), args.folder / "train.safetensors")
    save_file(windows_of([text[len(text) * 9 // 10:] for text in coded], args.context), args.folder / "test.safetensors")
    torch.manual_seed(1)
    model = Gru(len(code), args.width) if args.model == "gru" else Transformer(len(code), args.context, args.width)
    torch.jit.script(WithLoss(model)).save(str(args.folder / "model.pt"))
    (args.folder / "job.textproto").write_text(JOB.format(folder=args.folder.resolve()), encoding="utf-8")


if __name__ == "__main__":
    main()
