"""Payloads: docs/codecs.md. `encode` and `decode` know every codec."""

from dataclasses import dataclass, replace

import numpy as np

from tests.python_client import codebooks, dct, indices, low_rank, number_formats
from tests.python_client.indices import expect, mix_bits

NAMES = dict(enumerate(["fp32", "fp16", "bf16", "fp8_e5m2", "fp8_e4m3", "topk", "int8", "onebit", "onebit_sign"], 1))
NAMES.update(enumerate(["twobit", "randomk", "qsgd", "log_4"], 10))
NAMES.update({13 + bits: f"table_{bits}" for bits in range(1, 9)})
NAMES.update({21 + bits: f"lloyd_{bits}" for bits in range(1, 9)})
NAMES.update({30: "powersgd", 31: "fp4_e3m0", 32: "dct_topk"})
IDS = {name: number for number, name in NAMES.items()}
SPARSE = ("topk", "randomk")
DENSE = tuple(name for name in IDS if name not in (*SPARSE, "powersgd", "dct_topk"))


@dataclass(frozen=True)
class Settings:
    """The settings of encoders, by the names of the job file, and the numbers that determine random draws."""

    density: float = 0.01
    topk_least: int = 1
    topk_values: str = "fp32"
    topk_indices: int = indices.ELIAS_FANO
    twobit_threshold: float = 0.5
    qsgd_levels: int = 7
    onebit_group: int = 0
    powersgd_rank: int = 2
    columns: int = 0  # of the shard's matrix; 0: unknown
    first_column: int = 0
    warm_start: np.ndarray = None  # the third result of low_rank.iterate for the shard's previous push
    worker: int = 0
    step: int = 0
    shard: int = 0

    @property
    def shared_key(self):
        return mix_bits(mix_bits(self.step) + self.shard)

    @property
    def worker_key(self):
        return mix_bits(self.shared_key + self.worker + 1)


def encode(name, values, settings=Settings()):
    if name == "topk":
        return _encode_topk(values, settings)
    if name == "randomk":
        return _encode_randomk(values, settings)
    if name == "dct_topk":
        return _encode_dct_topk(values, settings)
    if name == "powersgd":
        return encode_powersgd(values, settings)[0]
    if name in codebooks.CODEBOOKS:
        return bytes([IDS[name]]) + codebooks.encode_body(name, values, settings)
    return bytes([IDS[name]]) + number_formats.encode_body(name, values)


def decode(payload, n):
    """Returns the n values of a payload. Raises Malformed if it is not well-formed."""
    if payload and NAMES.get(payload[0]) == "powersgd":
        return _decode_powersgd(payload, n)
    if payload and NAMES.get(payload[0]) == "dct_topk":
        return dct.values_of(_spread(_decode_coded(payload, n), n))
    entries = decode_entries(payload, n)
    return _decode_dense(payload, n) if entries is None else _spread(entries, n)


def _spread(entries, n):
    values = np.zeros(n, np.float32)
    values[entries[0]] = entries[1]
    return values


def decode_entries(payload, n):
    """Returns the indices and values of a sparse payload, or None for another one."""
    expect(payload, "no codec id")
    name = NAMES.get(payload[0])
    expect(name, "unknown codec")
    if name == "topk":
        return _decode_coded(payload, n)
    if name == "randomk":
        expect(len(payload) > 9, "head too short")
        k, rest = indices.decode_varint(payload[9:])
        expect(k <= n, "more entries than values")
        draw = int.from_bytes(payload[1:9], "little")
        return indices.one_of_each_part(draw, k, n), _decode_dense(rest, k)
    return None


def _decode_coded(payload, n):
    number, rest = indices.decode_varint(payload[1:])
    k, coder = number // 2, number % 2
    expect(k <= n, "more entries than values")
    length = _dense_bytes(rest, k)
    values = _decode_dense(rest[:length], k)
    return indices.decode_indices(coder, rest[length:], k, n), values


def add(payload, sum):
    """sum += decode(payload); a sparse payload adds only its entries."""
    entries = decode_entries(payload, len(sum))
    if entries is None:
        sum += decode(payload, len(sum))
    else:
        sum[entries[0]] += entries[1]


def entry_count(settings, n, least=1):
    return min(n, max(int(settings.density * n + 0.5), least))


def _largest(values, k):
    return np.sort(np.lexsort((np.arange(len(values)), -np.abs(values)))[:k])


def _encode_topk(values, settings):
    k = entry_count(settings, len(values), settings.topk_least)
    return _encode_coded("topk", values, values, _largest(values, k), settings)


def _encode_dct_topk(values, settings):
    if len(values) and np.abs(values).max() > 2.0**120:
        return encode(settings.topk_values, values, settings)
    coefficients = dct.coefficients(values)
    chosen = [np.zeros(0, np.int64)]
    for first in range(0, len(values), dct.CHUNK):
        chunk = coefficients[first : first + dct.CHUNK]
        chosen.append(first + _largest(chunk, entry_count(settings, len(chunk))))
    return _encode_coded("dct_topk", values, coefficients, np.concatenate(chosen), settings)


def _encode_coded(name, values, entries, chosen, settings):
    """Returns a payload of entries[chosen], or that of all values in the value codec if it is not longer."""
    n, k = len(values), len(chosen)
    head = bytes([IDS[name]]) + indices.encode_varint(2 * k + settings.topk_indices)
    dense = encode(settings.topk_values, values, settings)
    sent = encode(settings.topk_values, entries[chosen], settings)
    if len(head) + len(sent) + indices.largest_code(settings.topk_indices, k, n) >= len(dense):
        return dense
    return head + sent + indices.encode_indices(settings.topk_indices, chosen, n)


def _encode_randomk(values, settings):
    n = len(values)
    k = entry_count(settings, n)
    draw = settings.shared_key
    chosen = indices.one_of_each_part(draw, k, n)
    head = bytes([IDS["randomk"]]) + draw.to_bytes(8, "little") + indices.encode_varint(k)
    return head + encode(settings.topk_values, values[chosen], settings)


def encode_powersgd(values, settings):
    """Returns the payload and the warm start of the shard's next push."""
    n = len(values)
    shape = low_rank.Shape(settings.powersgd_rank, settings.columns or low_rank.nearly_square(n), settings.first_column, n)
    counts = (shape.rows * shape.rank, shape.columns * shape.rank)
    dense = len(encode(settings.topk_values, values, settings))
    factors = sum(len(encode(settings.topk_values, np.zeros(count, np.float32), settings)) for count in counts)
    if sum(counts) > n or 2 * (low_rank.HEAD_BYTES + factors) >= dense:
        return encode(settings.topk_values, values, settings), settings.warm_start
    p, q, warm_start = low_rank.iterate(values, shape, settings.warm_start)
    head = low_rank.write_head(IDS["powersgd"], shape)
    return head + encode(settings.topk_values, p, settings) + encode(settings.topk_values, q, settings), warm_start


def _decode_powersgd(payload, n):
    shape = low_rank.read_head(payload, n)
    rest = payload[low_rank.HEAD_BYTES :]
    p_bytes = _dense_bytes(rest, shape.rows * shape.rank)
    p = _decode_dense(rest[:p_bytes], shape.rows * shape.rank)
    return shape.product(p, _decode_dense(rest[p_bytes:], shape.columns * shape.rank))


def _dense_bytes(payload, n):
    expect(payload, "no codec id")
    name = NAMES.get(payload[0])
    expect(name in DENSE, "not a dense codec")
    if name in codebooks.CODEBOOKS:
        return 1 + codebooks.body_bytes(name, payload[1:], n)
    return 1 + number_formats.body_bytes(name, n)


def _decode_dense(payload, n):
    expect(len(payload) == _dense_bytes(payload, n), "wrong length")
    name = NAMES[payload[0]]
    if name in codebooks.CODEBOOKS:
        return codebooks.decode_body(name, payload[1:], n)
    return number_formats.decode_body(name, payload[1:], n)
