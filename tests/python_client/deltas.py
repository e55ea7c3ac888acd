"""Exact deltas, the payloads of kind MOVE: docs/deltas.md."""

import numpy as np

from tests.python_client.indices import ELIAS_FANO, decode_indices, expect, largest_code, to_bits
from tests.python_client.number_formats import bits_of

SIGN = np.uint32(0x80000000)
OTHERS = np.uint32(0x7FFFFFFF)


def apply_exact_delta(payload, values):
    """Moves the values that the payload names."""
    expect(len(payload) >= 5, "head too short")
    k, order = int.from_bytes(payload[:4], "little"), payload[4]
    expect(k <= len(values), "more entries than values")
    expect(order <= 31, "order too large")
    codes_at = 5 + largest_code(ELIAS_FANO, k, len(values))
    indices = decode_indices(ELIAS_FANO, payload[5:codes_at], k, len(values))
    differences = np.array(_differences(to_bits(payload[codes_at:]).tolist(), k, order), np.uint32)
    numbers = bits_of(values[indices])
    numbers = np.where(numbers & SIGN, numbers ^ OTHERS, numbers) + differences
    values[indices] = np.where(numbers & SIGN, numbers ^ OTHERS, numbers).astype("<u4").view("<f4")


def _differences(bits, k, order):
    at = 0
    differences = []
    for _ in range(k):
        expect(1 in bits[at : at + 33], "too few codes")
        one = bits.index(1, at)
        length = one - at + order
        at = one + 1 + length
        expect(at <= len(bits) and length <= 32, "too few codes")
        low = sum(bit << i for i, bit in enumerate(bits[one + 1 : at]))
        w = (1 << length) + low - (1 << order) + 1
        differences.append(w // 2 if w % 2 == 0 else ~(w // 2) & 0xFFFFFFFF)
    expect(len(bits) - at < 8 and not any(bits[at:]), "bits after the last code")
    return differences
