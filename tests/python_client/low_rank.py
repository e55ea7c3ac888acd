"""The payloads of powersgd: docs/codecs.md, "powersgd"."""

from dataclasses import dataclass

import numpy as np

from tests.python_client.indices import expect, mix_bits

MOST_RANK = 32
DEPENDENT = 1e-5
PARTS = 256  # of a sum over the rows
HEAD_BYTES = 10


@dataclass(frozen=True)
class Shape:
    """The run of a matrix that a shard of n values is, and the rank of P and Q."""

    rank: int
    columns: int
    first_column: int
    n: int

    @property
    def rows(self):
        return -(-(self.first_column + self.n) // self.columns)

    def pad(self, values):
        """Returns the rows of the matrix, with zeros beside the values."""
        matrix = np.zeros(self.rows * self.columns, np.float32)
        matrix[self.first_column : self.first_column + self.n] = values
        return matrix.reshape(self.rows, self.columns)

    def product(self, p, q):
        """Returns the values of the shard, from P and Q column by column."""
        matrix = np.zeros((self.rows, self.columns), np.float32)
        for k in range(self.rank):
            column = p[k * self.rows : (k + 1) * self.rows]
            matrix += column[:, None] * q[k * self.columns : (k + 1) * self.columns]
        return matrix.reshape(-1)[self.first_column : self.first_column + self.n]


def nearly_square(n):
    columns = 1
    while columns * columns < n:
        columns += 1
    return columns


def read_head(payload, n):
    expect(len(payload) >= HEAD_BYTES, "head too short")
    columns, first_column = np.frombuffer(payload[2:HEAD_BYTES], "<u4").tolist()
    shape = Shape(payload[1], columns, first_column, n)
    expect(1 <= shape.rank <= MOST_RANK, "rank out of range")
    expect(1 <= columns <= n and first_column < columns, "columns out of range")
    expect((shape.rows + columns) * shape.rank <= n, "P and Q larger than the shard")
    return shape


def write_head(number, shape):
    return bytes([number, shape.rank]) + np.array([shape.columns, shape.first_column], "<u4").tobytes()


def iterate(values, shape, warm_start):
    """Returns P and Q column by column, and the warm start of the next call."""
    columns, first = shape.columns, shape.first_column
    if warm_start is None:
        warm_start = _scaled(np.zeros(shape.rank * columns, np.float32), columns)
    largest = np.max(np.abs(values))
    exponent = np.clip(np.frexp(largest)[1] - 1, -126, 126) if largest > 0 else 0
    q = (warm_start * np.float32(np.ldexp(1.0, -exponent))).reshape(shape.rank, columns)
    matrix = shape.pad(values)
    products = []
    for k in range(shape.rank):
        column = _row_sums(matrix, q[k])
        column[0] = _row_sums(matrix[:1, first:], q[k][first:])[0]  # the parts begin with the first value
        products.append(column)
    p = _orthonormal(products)
    q = np.zeros((shape.rank, columns), np.float32)
    with np.errstate(over="ignore"):
        for k in range(shape.rank):
            for row in range(shape.rows):
                q[k] += p[k][row] * matrix[row]
    limit = np.float32(np.finfo(np.float32).max) / np.float32(2 * shape.rank)
    q = np.clip(q, -limit, limit).reshape(-1)
    return np.concatenate(p), q, _scaled(q.copy(), columns)


def _row_sums(matrix, q):
    parts = np.zeros((len(matrix), 16), np.float32)
    for begin in range(0, len(q), 16):
        products = matrix[:, begin : begin + 16] * q[begin : begin + 16]
        parts[:, : products.shape[1]] += products
    sums = np.zeros(len(matrix), np.float32)
    for part in range(16):
        sums += parts[:, part]
    return sums


def _sum(values):
    """Adds value i to part i mod PARTS, then the second half of the parts to the first half, until one part is left."""
    parts = np.zeros(PARTS)
    for begin in range(0, len(values), PARTS):
        some = values[begin : begin + PARTS]
        parts[: len(some)] += some
    while len(parts) > 1:
        parts = parts[: len(parts) // 2] + parts[len(parts) // 2 :]
    return parts[0]


def _orthonormal(columns):
    done = []
    for column in columns:
        column = column.astype(np.float64)
        before = np.sqrt(_sum(column * column))
        for other in (other.astype(np.float64) for other in done):
            column = column - _sum(column * other) * other
        after = np.sqrt(_sum(column * column))
        done.append((column / after if after > DEPENDENT * before else 0 * column).astype(np.float32))
    return done


def _scaled(q, columns):
    for k in range(len(q) // columns):
        column = q[k * columns : (k + 1) * columns]
        largest = np.max(np.abs(column))
        if not largest > 0:
            bits = mix_bits(np.arange(k * columns, (k + 1) * columns, dtype=np.uint64))
            column[:] = (bits >> np.uint64(32)).astype(np.uint32).astype(np.int32).astype(np.float32) * np.float32(2**-31)
        else:
            column[:] = column * np.ldexp(1.0, -(np.frexp(largest)[1] - 1))
    return q
