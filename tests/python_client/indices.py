"""Random numbers and the coding of indices: docs/codecs.md, "MixBits", "topk and randomk" and "Indices"."""

import numpy as np

ELIAS_FANO = 0
GOLOMB_RICE = 1
MASK = (1 << 64) - 1


class Malformed(ValueError):
    """A payload that docs/codecs.md or docs/deltas.md does not allow."""


def expect(condition, problem):
    if not condition:
        raise Malformed(problem)


def mix_bits(x):
    """MixBits of a number, or of every number of an array of uint64."""
    if isinstance(x, int):
        return int(mix_bits(np.array([x & MASK], np.uint64))[0])
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


def one_of_each_part(draw, k, n):
    """One index of each of the k parts of n values: part i yields begin + MixBits(draw + i) mod its length."""
    i = np.arange(k, dtype=np.uint64)
    begin = i * np.uint64(n) // np.uint64(k)
    end = (i + np.uint64(1)) * np.uint64(n) // np.uint64(k)
    drawn = mix_bits(np.array([draw & MASK], np.uint64) + i)
    return (begin + drawn % (end - begin)).astype(np.int64)


def to_bytes(bits):
    """Packs an array of zeros and ones, the first bit into the lowest bit of the first byte."""
    return np.packbits(np.asarray(bits, np.uint8), bitorder="little").tobytes()


def to_bits(data):
    return np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")


def low_bits(coder, k, n):
    if coder == ELIAS_FANO:
        return (n // k).bit_length() - 1
    least = 481 * n // (1000 * k)
    return 0 if least <= 1 else (least - 1).bit_length()


def largest_code(coder, k, n):
    """The largest length of the code of k indices below n in bytes, which is the length of every elias_fano code."""
    if k == 0:
        return 0
    l = low_bits(coder, k, n)
    upper = k + ((n - 1) >> l) + 1 if coder == ELIAS_FANO else k + ((n - k) >> l)
    return (k * l + 7) // 8 + (upper + 7) // 8


def encode_indices(coder, indices, n):
    k = len(indices)
    if k == 0:
        return b""
    l = low_bits(coder, k, n)
    indices = np.asarray(indices, np.int64)
    if coder == ELIAS_FANO:
        numbers = indices
        upper = indices >> l
        upper_bits = k + ((n - 1) >> l) + 1
    else:
        numbers = np.diff(indices, prepend=-1) - 1
        upper = np.cumsum(numbers >> l)
        upper_bits = int(upper[-1]) + k
    low = (numbers[:, None] >> np.arange(l)) & 1
    bits = np.zeros(upper_bits, np.uint8)
    bits[upper + np.arange(k)] = 1
    return to_bytes(low.reshape(-1)) + to_bytes(bits)


def decode_indices(coder, code, k, n):
    """Decodes a whole code. Raises Malformed if no encoder writes it."""
    expect(k <= n, "more indices than values")
    if k == 0:
        expect(not code, "bytes without an index")
        return np.zeros(0, np.int64)
    l = low_bits(coder, k, n)
    low_bytes = (k * l + 7) // 8
    expect(len(code) > low_bytes, "too short")
    low = to_bits(code[:low_bytes])
    expect(not low[k * l :].any(), "nonzero padding")
    low = (low[: k * l].reshape(k, l).astype(np.int64) << np.arange(l)).sum(axis=1)
    set_bits = np.flatnonzero(to_bits(code[low_bytes:]))
    expect(len(set_bits) == k, "wrong number of indices")
    upper = set_bits - np.arange(k)
    if coder == ELIAS_FANO:
        expect(len(code) == largest_code(coder, k, n), "wrong length")
        indices = (upper << l) | low
        expect((np.diff(indices) > 0).all(), "not ascending")
    else:
        expect(len(code) - low_bytes == set_bits[-1] // 8 + 1, "bytes after the last index")
        gaps = (np.diff(upper, prepend=0) << l) | low
        indices = np.cumsum(gaps + 1) - 1
    expect(indices[-1] < n, "index too large")
    return indices


def encode_list(indices, n):
    """An index list, the form of `selected`: docs/wire.md, "Reading"."""
    return len(indices).to_bytes(4, "little") + encode_indices(ELIAS_FANO, indices, n)


def decode_list(data, n):
    expect(len(data) >= 4, "too short")
    return decode_indices(ELIAS_FANO, data[4:], int.from_bytes(data[:4], "little"), n)


def encode_varint(number):
    data = bytearray()
    while number >= 0x80:
        data.append(number & 0x7F | 0x80)
        number >>= 7
    return bytes(data) + bytes([number])


def decode_varint(data):
    """Returns the number and the rest of the data."""
    number = 0
    for i, byte in enumerate(data[:5]):
        number |= (byte & 0x7F) << (7 * i)
        if byte < 0x80:
            expect(encode_varint(number) == data[: i + 1], "more bytes than needed")
            return number, data[i + 1 :]
    raise Malformed("no end of a varint")
