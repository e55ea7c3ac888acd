"""Makes the files of a job that trains a character model without Python (docs/losses.md).

    python3 examples/char_model.py char
    bazel-bin/cli/thinwire train --config char/job.textproto --output char/trained.safetensors

The module computes the loss itself, so the job has loss: script. x and y are windows of character codes; y is x one character
later. The text is /usr/share/common-licenses/GPL-3 of the Debian package base-files, unless --text names another.
"""

import argparse
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


class CharModel(nn.Module):
    def __init__(self, codes, width=48):
        super().__init__()
        self.embed = nn.Embedding(codes, width)
        self.recurrent = nn.GRU(width, width, batch_first=True)
        self.output = nn.Linear(width, codes)

    def forward(self, x, y):
        """X, Y: codes [n, context]. Returns the mean loss in nats per character."""
        hidden, _ = self.recurrent(self.embed(x))
        return functional.cross_entropy(self.output(hidden).flatten(0, 1), y.flatten())


def windows_of(text, context):
    """Returns the windows of a text, as x and y [n, context]."""
    windows = text.unfold(0, context + 1, context)
    return {"x": windows[:, :-1].clone(), "y": windows[:, 1:].clone()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("folder", type=pathlib.Path, help="the folder that gets the files")
    parser.add_argument("--text", default="/usr/share/common-licenses/GPL-3", help="a text file")
    parser.add_argument("--context", type=int, default=32, help="characters in a window")
    args = parser.parse_args()
    text = pathlib.Path(args.text).read_text(encoding="utf-8")
    characters = sorted(set(text))
    codes = torch.tensor([characters.index(c) for c in text])
    args.folder.mkdir(parents=True, exist_ok=True)
    split = len(codes) * 9 // 10
    save_file(windows_of(codes[:split], args.context), args.folder / "train.safetensors")
    save_file(windows_of(codes[split:], args.context), args.folder / "test.safetensors")
    torch.manual_seed(1)
    torch.jit.script(CharModel(len(characters))).save(str(args.folder / "model.pt"))
    (args.folder / "job.textproto").write_text(JOB.format(folder=args.folder.resolve()), encoding="utf-8")


if __name__ == "__main__":
    main()
