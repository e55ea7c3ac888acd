"""The built-in models of thinwire as PyTorch modules.

Their tensors have the names of a model file that `thinwire train --output` writes:

    model = models.Cnn([1, 28, 28], 10)
    model.load_state_dict(safetensors.torch.load_file("model.safetensors"))
    model.eval()

Every module takes the shape of one example and the number of classes. Its forward takes a batch [n, ...example shape] and
returns logits [n, classes]. docs/models.md says how the bytes of an image become floats.
"""

import math
from collections import OrderedDict

import torch
from torch import nn
from torch.nn import functional


class Softmax(nn.Module):
    def __init__(self, example_shape, classes):
        super().__init__()
        self.dense = nn.Linear(math.prod(example_shape), classes)

    def forward(self, x):
        return self.dense(x.flatten(1))


class Mlp(nn.Module):
    def __init__(self, example_shape, classes):
        super().__init__()
        self.dense1 = nn.Linear(math.prod(example_shape), 256)
        self.dense2 = nn.Linear(256, 128)
        self.dense3 = nn.Linear(128, classes)

    def forward(self, x):
        x = functional.relu(self.dense1(x.flatten(1)))
        x = functional.relu(self.dense2(x))
        return self.dense3(x)


class Cnn(nn.Module):
    def __init__(self, example_shape, classes):
        super().__init__()
        channels, height, width = example_shape
        self.conv1 = nn.Conv2d(channels, 16, 5, padding=2)
        self.conv2 = nn.Conv2d(16, 32, 5, padding=2)
        self.dense1 = nn.Linear(32 * (height // 4) * (width // 4), 128)
        self.dense2 = nn.Linear(128, classes)

    def forward(self, x):
        x = functional.max_pool2d(functional.relu(self.conv1(x)), 2)
        x = functional.max_pool2d(functional.relu(self.conv2(x)), 2)
        x = functional.relu(self.dense1(x.flatten(1)))
        return self.dense2(x)


class Block(nn.Module):
    """A residual block whose shortcut has no parameters (option A of He et al. 2016)."""

    def __init__(self, inputs, outputs, stride):
        super().__init__()
        self.stride = stride
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)

    def forward(self, x):
        shortcut = x
        if self.stride == 2:
            half = x.shape[1] // 2
            shortcut = functional.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, half, half))
        x = functional.relu(self.bn1(self.conv1(x)))
        return functional.relu(self.bn2(self.conv2(x)) + shortcut)


class Resnet20(nn.Module):
    def __init__(self, example_shape, classes):
        super().__init__()
        self.conv = nn.Conv2d(example_shape[0], 16, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(16)
        self.stage1 = self.stage(16, 16)
        self.stage2 = self.stage(16, 32)
        self.stage3 = self.stage(32, 64)
        self.dense = nn.Linear(64, classes)

    @staticmethod
    def stage(inputs, outputs):
        return nn.Sequential(
            OrderedDict(
                block1=Block(inputs, outputs, 1 if inputs == outputs else 2),
                block2=Block(outputs, outputs, 1),
                block3=Block(outputs, outputs, 1),
            )
        )

    def forward(self, x):
        x = functional.relu(self.bn(self.conv(x)))
        x = self.stage3(self.stage2(self.stage1(x)))
        return self.dense(torch.mean(x, (2, 3)))


MODELS = {"softmax": Softmax, "mlp": Mlp, "cnn": Cnn, "resnet20": Resnet20}
