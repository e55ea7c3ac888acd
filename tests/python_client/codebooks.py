"""Codecs with a table: docs/codecs.md, "Codes with a table"."""

import numpy as np

from tests.python_client.indices import expect, mix_bits, one_of_each_part, to_bits, to_bytes
from tests.python_client.number_formats import bits_of
from tests.python_client.sums import is_negative, mean_magnitude, sums_by_sign

F = np.float32
HALF = F(0.5)


def nearest(table, values):
    """The codes of the nearest magnitudes, without the sign."""
    magnitudes = table[: len(table) // 2]
    thresholds = HALF * magnitudes[:-1] + HALF * magnitudes[1:]
    return np.searchsorted(thresholds, np.abs(values), side="right")


def with_sign(codes, values, bits):
    return codes | (is_negative(values).astype(np.int64) << (bits - 1))


class Codebook:
    """A codec with a table. By default, the numbers of a group are the magnitudes of the codes."""

    head_bytes = 0
    bits_of_code = 8
    number_count = 1

    def bits(self, head):
        return self.bits_of_code

    def group(self, head):
        return 0

    def head(self, settings):
        return b""

    def table(self, head, numbers):
        return np.concatenate([numbers, -numbers])

    def fit(self, head, values, settings):
        """Returns the head and the numbers of one group."""
        raise NotImplementedError

    def codes(self, head, numbers, values, first, settings):
        return with_sign(nearest(self.table(head, numbers), values), values, self.bits(head))


class Int8(Codebook):
    head_bytes = 1

    def head(self, settings):
        return b"\0"

    def table(self, head, numbers):
        s = numbers[0]
        with np.errstate(all="ignore"):
            values = s * (np.arange(256, dtype=F) - F(head[0]))
        largest = np.finfo(F).max
        return np.clip(values, -largest, largest) if np.isfinite(s) else values

    def fit(self, head, values, settings):
        most, least = F(max(values.max(), 0)), F(min(values.min(), 0))
        s = most / F(255) - least / F(255)
        zero = int(min(max(-least / s + HALF, F(0)), F(255))) if s > 0 else 0
        return bytes([zero]), np.array([s], F)

    def codes(self, head, numbers, values, first, settings):
        if numbers[0] == 0:
            return np.full(len(values), head[0], np.int64)
        steps = values / numbers[0] + (F(head[0]) + HALF)
        return np.clip(steps, F(0), F(255)).astype(np.int64)


class OneBit(Codebook):
    head_bytes = 4
    bits_of_code = 1
    number_count = 2

    def group(self, head):
        group = int.from_bytes(head, "little")
        expect(group % 8 == 0, "group not a multiple of 8")
        return group

    def head(self, settings):
        return settings.onebit_group.to_bytes(4, "little")

    def table(self, head, numbers):
        return numbers

    def fit(self, head, values, settings):
        positive, negative, negatives = sums_by_sign(values)
        positives = len(values) - negatives
        p = F(positive / positives) if positives else F(0)
        m = F(negative / negatives) if negatives else F(0)
        return head, np.array([p, m], F)

    def codes(self, head, numbers, values, first, settings):
        return is_negative(values).astype(np.int64)


class OneBitSign(OneBit):
    number_count = 1

    def table(self, head, numbers):
        return np.array([numbers[0], -numbers[0]], F)

    def fit(self, head, values, settings):
        return head, mean_magnitude(values)


class Table(Codebook):
    """table_N and lloyd_N; lloyd_1 has a fit of its own."""

    def __init__(self, bits, refinements):
        self.bits_of_code = bits
        self.number_count = 1 << (bits - 1)
        self.refinements = refinements

    def fit(self, head, values, settings):
        if self.refinements and self.number_count == 1:
            return head, mean_magnitude(values)
        e, n = self.number_count, len(values)
        m = min(n, max(4096, 128 * e))
        sample = np.sort(np.abs(values[one_of_each_part(0, m, n)]))
        position = 0.99 * np.arange(1, e + 1) / e * (m - 1)
        below = position.astype(np.int64)
        above = np.minimum(below + 1, m - 1)
        f = position - below
        doubles = sample.astype(np.float64)
        numbers = ((1 - f) * doubles[below] + f * doubles[above]).astype(F)
        for _ in range(self.refinements):
            self._refine(sample, numbers)
        return head, numbers

    @staticmethod
    def _refine(sample, numbers):
        begin = 0
        for j in range(len(numbers)):
            end = len(sample)
            if j + 1 < len(numbers):
                end = max(begin, np.searchsorted(sample, HALF * numbers[j] + HALF * numbers[j + 1]))
            if end > begin:
                total = np.cumsum(sample[begin:end].astype(np.float64))[-1]  # in ascending order
                numbers[j] = F(total / (end - begin))
            begin = end


class TwoBit(Codebook):
    bits_of_code = 2

    def table(self, head, numbers):
        return np.array([0, numbers[0], -0.0, -numbers[0]], F)

    def fit(self, head, values, settings):
        return head, np.array([settings.twobit_threshold], F)

    def codes(self, head, numbers, values, first, settings):
        return with_sign((np.abs(values) >= numbers[0]).astype(np.int64), values, 2)


class Qsgd(Codebook):
    head_bytes = 1

    def bits(self, head):
        expect(1 <= head[0] <= 127, "levels out of range")
        return 1 + head[0].bit_length()

    def group(self, head):
        return 512

    def head(self, settings):
        return bytes([settings.qsgd_levels])

    def table(self, head, numbers):
        levels = head[0]
        c = np.minimum(np.arange(1 << (self.bits(head) - 1)), levels).astype(F)
        magnitudes = numbers[0] * (c / F(levels))
        return np.concatenate([magnitudes, -magnitudes])

    def fit(self, head, values, settings):
        return head, np.array([np.abs(values).max()], F)

    def codes(self, head, numbers, values, first, settings):
        levels = F(head[0])
        i = np.arange(first, first + len(values), dtype=np.uint64)
        words = mix_bits(np.array([settings.worker_key], np.uint64) + i // np.uint64(4))
        draws = words >> np.uint64(16) * (i % np.uint64(4)) & np.uint64(0xFFFF)
        if numbers[0] == 0:
            c = np.zeros(len(values), np.int64)
        else:
            dithered = np.abs(values) / numbers[0] * levels + draws.astype(F) * F(2.0**-16)
            c = np.minimum(dithered, levels).astype(np.int64)
        return with_sign(c, values, self.bits(head))


class Log4(Codebook):
    head_bytes = 3
    bits_of_code = 4
    number_count = 0

    def table(self, head, numbers):
        ratio = F(1) - F(head[2]) / F(256)
        magnitudes = [(np.array([int.from_bytes(head[:2], "little")], "<u4") << 16).view("<f4")[0]]
        for _ in range(7):
            magnitudes.insert(0, magnitudes[0] * ratio)
        return np.array(magnitudes + [-m for m in magnitudes], F)

    def fit(self, head, values, settings):
        magnitudes = np.abs(values)
        largest = F(magnitudes.max())
        smallest = max(magnitudes[magnitudes > 0].min(initial=largest), largest * F(1 / 256))
        b, ratio = 0, F(1)
        while b < 255:
            fourth = (ratio * ratio) * (ratio * ratio)
            if not largest * (fourth * fourth) > smallest:
                break
            b += 1
            ratio = F(1) - F(b) / F(256)
        bits = int(bits_of(largest * np.sqrt(ratio))[0])
        if bits < 0x7F7F8000:
            bits += 0x8000
        return (bits >> 16).to_bytes(2, "little") + bytes([b]), np.zeros(0, F)


class Fp4E3m0(Codebook):
    bits_of_code = 4

    def group(self, head):
        return 512

    def table(self, head, numbers):
        magnitudes = np.append(F(0), numbers[0] * F(2) ** np.arange(-6, 1, dtype=F))
        return np.concatenate([magnitudes, -magnitudes])

    def fit(self, head, values, settings):
        return head, np.array([np.abs(values).max()], F)


CODEBOOKS = {"int8": Int8(), "onebit": OneBit(), "onebit_sign": OneBitSign(), "twobit": TwoBit(), "qsgd": Qsgd()}
CODEBOOKS.update({"log_4": Log4(), "fp4_e3m0": Fp4E3m0()})
CODEBOOKS.update({f"table_{bits}": Table(bits, 0) for bits in range(1, 9)})
CODEBOOKS.update({f"lloyd_{bits}": Table(bits, 8) for bits in range(1, 9)})


def groups(codebook, head, n):
    """Pairs (begin, end) of the groups of n values."""
    size = codebook.group(head) or n
    return [(begin, min(n, begin + size)) for begin in range(0, n, size)] if n else []


def encode_body(name, values, settings):
    codebook = CODEBOOKS[name]
    head = codebook.head(settings)
    numbers, codes = b"", []
    for begin, end in groups(codebook, head, len(values)):
        group = values[begin:end]
        head, fitted = codebook.fit(head, group, settings)
        numbers += fitted.astype("<f4").tobytes()
        codes.append(codebook.codes(head, fitted, group, begin, settings))
    if not codes:
        return head.ljust(codebook.head_bytes, b"\0")
    codes = np.concatenate(codes)
    codes = np.append(codes, np.zeros(-len(codes) % 8, np.int64))
    bits = (codes[:, None] >> np.arange(codebook.bits(head))) & 1
    return head + numbers + to_bytes(bits.reshape(-1))


def body_bytes(name, body, n):
    codebook = CODEBOOKS[name]
    expect(len(body) >= codebook.head_bytes, "head too short")
    head = body[: codebook.head_bytes]
    numbers = 4 * codebook.number_count * len(groups(codebook, head, n))
    return codebook.head_bytes + numbers + (n + 7) // 8 * codebook.bits(head)


def decode_body(name, body, n):
    codebook = CODEBOOKS[name]
    expect(len(body) == body_bytes(name, body, n), "wrong length")
    head = body[: codebook.head_bytes]
    parts = groups(codebook, head, n)
    bits = codebook.bits(head)
    codes_at = len(body) - (n + 7) // 8 * bits
    numbers = np.frombuffer(body[codebook.head_bytes : codes_at], "<f4").reshape(len(parts), -1)
    codes = (to_bits(body[codes_at:]).reshape(-1, bits).astype(np.int64) << np.arange(bits)).sum(axis=1)
    expect(not codes[n:].any(), "nonzero padding")
    values = np.zeros(n, F)
    for (begin, end), own in zip(parts, numbers):
        values[begin:end] = codebook.table(head, own)[codes[begin:end]]
    return values
