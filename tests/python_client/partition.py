"""The partition of a model: docs/wire.md, "Partition". Also its hash and the hash of a shard's values."""

import math
from dataclasses import dataclass

import numpy as np

FNV_START = 0xCBF29CE484222325
FNV_FACTOR = 0x100000001B3
MASK = (1 << 64) - 1


@dataclass(frozen=True)
class Tensor:
    name: str
    shape: tuple

    @property
    def count(self):
        return math.prod(self.shape)


@dataclass(frozen=True)
class Segment:
    """`count` consecutive values of tensor number `tensor`, from `offset` on."""

    tensor: int
    offset: int
    count: int


@dataclass
class Shard:
    segments: list
    server: int = -1

    @property
    def count(self):
        return sum(segment.count for segment in self.segments)


class Partition:
    def __init__(self, tensors, shard_size, servers):
        self.tensors = list(tensors)
        self.servers = servers
        self.shard_size = effective_shard_size(self.tensors, shard_size, servers)
        self.shards = self._split()
        self._assign()
        self.hash = partition_hash(self.tensors, self.shard_size, servers)

    def shards_of(self, server):
        return [number for number, shard in enumerate(self.shards) if shard.server == server]

    def gather(self, shard, arrays):
        """Returns the values of a shard from one array per tensor."""
        parts = [arrays[s.tensor].reshape(-1)[s.offset : s.offset + s.count] for s in self.shards[shard].segments]
        return np.concatenate(parts).astype(np.float32)

    def scatter(self, shard, values, arrays):
        """Writes the values of a shard into one array per tensor."""
        begin = 0
        for s in self.shards[shard].segments:
            arrays[s.tensor].reshape(-1)[s.offset : s.offset + s.count] = values[begin : begin + s.count]
            begin += s.count

    def _split(self):
        runs = []
        vectors = []
        for number, tensor in enumerate(self.tensors):
            whole = Segment(number, 0, tensor.count)
            if len(tensor.shape) >= 2:
                runs.append([whole])
            else:
                vectors.append(whole)
        if vectors:
            runs.append(vectors)
        shards = [shard for run in runs for shard in self._split_run(run)]
        shards.sort(key=lambda shard: (-shard.segments[0].tensor, -shard.segments[0].offset))
        return shards

    def _split_run(self, run):
        count = sum(segment.count for segment in run)
        pieces = -(-count // self.shard_size)
        left = list(run)
        for i in range(pieces):
            wanted = count // pieces + (1 if i < count % pieces else 0)
            segments = []
            while wanted > 0:
                first = left.pop(0)
                part = min(wanted, first.count)
                segments.append(Segment(first.tensor, first.offset, part))
                if part < first.count:
                    left.insert(0, Segment(first.tensor, first.offset + part, first.count - part))
                wanted -= part
            yield Shard(segments)

    def _assign(self):
        loads = [0] * self.servers
        for shard in sorted(self.shards, key=lambda shard: -shard.count):  # a stable sort
            shard.server = loads.index(min(loads))
            loads[shard.server] += shard.count


def effective_shard_size(tensors, shard_size, servers):
    total = sum(tensor.count for tensor in tensors)
    return shard_size or min(max(total // (8 * servers), 4096), 262144)


def partition_hash(tensors, shard_size, servers):
    """The hash of a partition. `shard_size` is the effective one."""
    items = [len(tensors)]
    for tensor in tensors:
        items += [tensor.name.encode(), len(tensor.shape), *tensor.shape]
    value = FNV_START
    for item in items + [shard_size, servers]:
        if isinstance(item, bytes):
            data = len(item).to_bytes(8, "little") + item
        else:
            data = (item & MASK).to_bytes(8, "little")
        for byte in data:
            value = (value ^ byte) * FNV_FACTOR & MASK
    return value


def value_hash(values):
    """The hash of a shard's values: docs/wire.md, "Reading"."""
    bits = values.astype("<f4").view("<u4").astype(np.uint64)
    lanes = np.full(4, FNV_START, np.uint64)
    factor = np.uint64(FNV_FACTOR)
    whole = len(bits) // 4 * 4
    for row in bits[:whole].reshape(-1, 4):
        lanes = (lanes ^ row) * factor
    for lane, last in enumerate(bits[whole:]):
        lanes[lane : lane + 1] = (lanes[lane : lane + 1] ^ last) * factor
    value = FNV_START
    for lane in lanes:
        value = (value ^ int(lane)) * FNV_FACTOR & MASK
    return value or 1


def model_hash(arrays):
    """The hash of a worker's first values, one array per tensor: docs/wire.md, "A worker's life"."""
    value = FNV_START
    for array in arrays:
        value = (value ^ value_hash(array.reshape(-1))) * FNV_FACTOR & MASK
    return value or 1
