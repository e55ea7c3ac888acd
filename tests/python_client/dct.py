"""The transform of dct_topk: docs/codecs.md, "dct_topk"."""

import math

import numpy as np

F = np.float32
CHUNK = 64
HALF = CHUNK // 2


def _basis(k, i):
    return 0.125 if k == 0 else math.sqrt(1 / 32) * math.cos(math.pi * k * (2 * i + 1) / 128)


BASIS = np.array([[_basis(k, i) for i in range(HALF)] for k in range(CHUNK)], F)


def _chunks(values):
    return values[: len(values) - len(values) % CHUNK].reshape(-1, CHUNK)


def coefficients(values):
    result = values.copy()
    chunks = _chunks(values)
    first, mirrored = chunks[:, :HALF], chunks[:, : HALF - 1 : -1]
    for parity, halves in enumerate((first + mirrored, first - mirrored)):
        total = np.zeros((len(chunks), HALF), F)
        for i in range(HALF):
            total += halves[:, i : i + 1] * BASIS[parity::2, i]
        _chunks(result)[:, parity::2] = total
    return result


def values_of(coefficients):
    result = coefficients.copy()
    chunks = _chunks(coefficients)
    sums = [np.zeros((len(chunks), HALF), F) for _ in range(2)]
    for k in range(CHUNK):
        sums[k % 2] += chunks[:, k : k + 1] * BASIS[k]
    _chunks(result)[:, :HALF] = sums[0] + sums[1]
    _chunks(result)[:, HALF:] = (sums[0] - sums[1])[:, ::-1]
    return result
