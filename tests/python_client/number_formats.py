"""The number formats fp32, fp16, bf16, fp8_e5m2 and fp8_e4m3: docs/codecs.md, "Number formats"."""

from dataclasses import dataclass

import numpy as np

from tests.python_client.indices import expect


@dataclass(frozen=True)
class Format:
    mantissa: int
    bias: int
    largest: int  # the code of the largest finite value
    nan: int
    infinity: int  # the code of infinity; 0: an infinity saturates
    type: str

    @property
    def sign_bit(self):
        return 1 << (8 * np.dtype(self.type).itemsize - 1)


FORMATS = {
    "fp16": Format(10, 15, 0x7BFF, 0x7E00, 0x7C00, "<u2"),
    "bf16": Format(7, 127, 0x7F7F, 0x7FC0, 0x7F80, "<u2"),
    "fp8_e5m2": Format(2, 15, 0x7B, 0x7F, 0, "u1"),
    "fp8_e4m3": Format(3, 7, 0x7E, 0x7F, 0, "u1"),
}
# unit = 2^(byte - 127) for the scale bytes 1 to 246
UNITS = np.ldexp(np.float32(1), np.arange(1, 247) - 127).astype(np.float32)


def bits_of(values):
    return np.ascontiguousarray(values, "<f4").view("<u4")


def encode_codes(f, values):
    bits = bits_of(values).astype(np.int64)
    magnitude = bits & 0x7FFFFFFF
    shift = 23 - f.mantissa
    rounding = (1 << (shift - 1)) - 1 + ((magnitude >> shift) & 1)
    normal = (magnitude + rounding - ((127 - f.bias) << 23)) >> shift
    addend = np.ldexp(np.float32(1), 24 - f.bias - f.mantissa).astype(np.float32)
    with np.errstate(all="ignore"):
        subnormal = bits_of(np.abs(values) + addend).astype(np.int64) - int(bits_of(addend)[()])
    code = np.where(magnitude >= (128 - f.bias) << 23, normal, subnormal)
    code = np.minimum(code, f.largest)
    if f.infinity:
        code = np.where(magnitude == 0x7F800000, f.infinity, code)
    code = np.where(bits >> 31 == 1, code | f.sign_bit, code)
    code = np.where(magnitude > 0x7F800000, f.nan, code)
    return code.astype(f.type)


def decode_codes(name, codes):
    if name == "fp16":
        return codes.view("<f2").astype(np.float32)
    if name == "bf16":
        return (codes.astype("<u4") << 16).view("<f4")
    if name == "fp8_e5m2":
        return (codes.astype("<u2") << 8).view("<f2").astype(np.float32)
    code = codes.astype(np.int64)
    exponent, mantissa = code >> 3 & 15, code & 7
    value = np.where(exponent == 0, np.ldexp(mantissa / 8, -6), np.ldexp(1 + mantissa / 8, exponent - 7))
    value = np.where(code & 0x7F == 0x7F, np.nan, value)
    return np.where(code & 0x80, -value, value).astype(np.float32)


def encode_body(name, values):
    if name == "fp32":
        return values.astype("<f4").tobytes()
    if name != "fp8_e4m3":
        return encode_codes(FORMATS[name], values).tobytes()
    largest = np.abs(values).max(initial=0)
    byte = int(np.searchsorted(np.float32(448) * UNITS, largest))
    byte = min(byte, len(UNITS) - 1)
    return bytes([byte + 1]) + encode_codes(FORMATS[name], values / UNITS[byte]).tobytes()


def body_bytes(name, n):
    return {"fp32": 4 * n, "fp16": 2 * n, "bf16": 2 * n, "fp8_e5m2": n, "fp8_e4m3": 1 + n}[name]


def decode_body(name, body, n):
    expect(len(body) == body_bytes(name, n), "wrong length")
    if name == "fp32":
        return np.frombuffer(body, "<f4").astype(np.float32)
    if name != "fp8_e4m3":
        return decode_codes(name, np.frombuffer(body, FORMATS[name].type))
    expect(1 <= body[0] <= 246, "scale byte out of range")
    return UNITS[body[0] - 1] * decode_codes(name, np.frombuffer(body, "u1", offset=1))
