"""A training worker: softmax regression in numpy, error feedback, late pushes and gTop-k returns (docs/wire.md)."""

import dataclasses

import numpy as np

from tests.python_client import codecs
from tests.python_client.client import VERDICTS
from tests.python_client.partition import Tensor

CLASSES = 4
FEATURES = 30
TENSORS = [Tensor("weight", (FEATURES, CLASSES)), Tensor("bias", (CLASSES,))]


def make_data(seed, examples=512):
    """Examples of CLASSES noisy clusters."""
    rng = np.random.default_rng(seed)
    centers = np.random.default_rng(0).standard_normal((CLASSES, FEATURES))
    labels = rng.integers(0, CLASSES, examples)
    return (centers[labels] + rng.standard_normal((examples, FEATURES))).astype(np.float32), labels


def initial_values(tensors=TENSORS):
    rng = np.random.default_rng(7)
    return [np.array(0.01 * rng.standard_normal(tensor.shape), np.float32) for tensor in tensors]


def softmax_loss(arrays, x, labels):
    """Returns the mean loss and the gradients."""
    weight, bias = arrays
    logits = x @ weight + bias
    logits -= logits.max(axis=1, keepdims=True)
    p = np.exp(logits)
    p /= p.sum(axis=1, keepdims=True)
    picked = p[np.arange(len(labels)), labels]
    p[np.arange(len(labels)), labels] -= 1
    p /= len(labels)
    return float(-np.log(np.maximum(picked, 1e-30)).mean()), [x.T @ p, p.sum(axis=0)]


class Worker:
    """Pushes gradients with error feedback. `codec` names the codec of the pushes."""

    def __init__(self, client, codec="fp32", settings=codecs.Settings(), batch=32):
        self.client = client
        self.codec = codec
        self.settings = dataclasses.replace(settings, worker=client.worker)
        self.batch = batch
        self.step = 0
        self.late = 0
        self.data = make_data(client.worker)
        count = len(client.shards)
        self.residuals = [np.zeros(len(shard.values), np.float32) for shard in client.shards]
        self.late_examples = [0] * count
        self.sent = [None] * count  # the decoded values of the last push
        self.returnable = [False] * count  # the push was accepted, and gTop-k returns what it does not select

    def begin(self):
        self.step = self.client.join(initial_values())
        self.client.start()

    def compute(self):
        """Waits for the parameters of this step. Returns one gradient per tensor."""
        arrays = self.client.parameters()
        self._take_returns()
        x, labels = self.data
        chosen = np.random.default_rng((self.client.worker, self.step)).integers(0, len(labels), self.batch)
        return softmax_loss(arrays, x[chosen], labels[chosen])[1]

    def push(self, gradients):
        payloads = []
        for number, residual in enumerate(self.residuals):
            values = residual + self.client.partition.gather(number, gradients)
            settings = dataclasses.replace(self.settings, step=self.step, shard=number)
            payload = codecs.encode(self.codec, values, settings)
            self.sent[number] = codecs.decode(payload, len(values))
            self.residuals[number] = values - self.sent[number]
            payloads.append(payload)
        self.client.push(self.step, payloads, self.batch, self.late_examples)

    def finish_step(self):
        """Waits for the verdicts and chooses the next step."""
        verdicts = self.client.verdicts()
        late = False
        for number, verdict in enumerate(verdicts):
            self.returnable[number] = verdict.kind == VERDICTS.ACCEPT
            if verdict.kind == VERDICTS.ACCEPT:
                self.late_examples[number] = 0
            elif verdict.kind == VERDICTS.LATE:
                late = True
                self.late += 1
                self.late_examples[number] += self.batch
                self.residuals[number] += self.sent[number]
            else:
                raise RuntimeError(f"unexpected verdict: {verdict}")
        next_step = self.step + 1
        if late:
            next_step = max(next_step, max(verdict.frontier for verdict in verdicts))
            if next_step > self.step + 1:
                self.client.read_all(next_step)
        self.step = next_step

    def train(self, steps):
        self.begin()
        while self.step < steps:
            self.push(self.compute())
            self.finish_step()
        self.client.leave()

    def _take_returns(self):
        for number, shard in enumerate(self.client.shards):
            if self.returnable[number] and shard.selected is not None and shard.frontier == self.step:
                unselected = self.sent[number].copy()
                unselected[shard.selected] = 0
                self.residuals[number] += unselected
            self.returnable[number] = False
