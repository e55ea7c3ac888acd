"""Sums and means that do not depend on the machine: docs/codecs.md, "Fits, bit by bit"."""

import numpy as np

from tests.python_client.number_formats import bits_of

F = np.float32


def is_negative(values):
    return bits_of(values) >> 31 == 1


def ordered_sum(values):
    """The sum in double, in the fixed order of docs/codecs.md."""
    values = np.append(values.astype(np.float64), np.zeros(-len(values) % 4096))
    runs = values.reshape(-1, 256, 16)
    parts = np.zeros((len(runs), 16))
    for row in range(256):
        parts = parts + runs[:, row]
    outer = np.zeros(16)
    for run, row in enumerate(parts):
        total = 0.0
        for part in row:
            total += part
        outer[run % 16] += total
    total = 0.0
    for part in outer:
        total += part
    return total


def sums_by_sign(values):
    negative = is_negative(values)
    zero = F(0)
    return (
        ordered_sum(np.where(negative, zero, values)),
        ordered_sum(np.where(negative, values, zero)),
        int(negative.sum()),
    )


def mean_magnitude(values):
    positive, negative, _ = sums_by_sign(values)
    return np.array([F((positive - negative) / len(values))], F)
