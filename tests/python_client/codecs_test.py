"""Compares the Python client's payloads, partitions and hashes with those of the C++ code, bit by bit.

    codecs_test WRITE_VECTORS
"""

import json
import subprocess
import sys
import unittest

import numpy as np

from tests.python_client import codecs, deltas, indices
from tests.python_client.number_formats import bits_of
from tests.python_client.partition import Partition, Tensor, value_hash

WRITE_VECTORS = ""


def floats(text):
    return np.frombuffer(bytes.fromhex(text), "<f4").astype(np.float32)


class CodecsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.vectors = json.loads(subprocess.run([WRITE_VECTORS], check=True, capture_output=True).stdout)

    def assert_same_bits(self, a, b, text):
        differ = np.flatnonzero(bits_of(a) != bits_of(b))
        self.assertEqual(len(differ), 0, f"{text}: first difference at {differ[:1]}")

    def test_payloads_decode_to_the_same_floats(self):
        seen = set()
        for case in self.vectors["pushes"]:
            seen.add(case["codec"])
            for push in case["pushes"]:
                decoded = floats(push["decoded"])
                got = codecs.decode(bytes.fromhex(push["payload"]), len(decoded))
                self.assert_same_bits(got, decoded, f"{case['codec']}, {len(decoded)} values")
        self.assertEqual(seen, set(codecs.IDS))

    def test_encoders_write_the_same_bytes(self):
        low_rank_count = 0
        for case in self.vectors["pushes"]:
            settings = codecs.Settings(worker=case["worker"], density=case["density"], topk_values=case["topk_values"],
                                       topk_indices=case["topk_indices"], qsgd_levels=case["qsgd_levels"],
                                       twobit_threshold=case["twobit_threshold"], onebit_group=case["onebit_group"],
                                       powersgd_rank=case["powersgd_rank"], columns=case["columns"],
                                       first_column=case["first_column"])
            lossless = case["codec"] == "fp32" or case["density"] == 1 and case["topk_values"] == "fp32"
            residual = 0
            self.assertEqual(len(case["pushes"]), 2)
            for push in case["pushes"]:
                values = floats(push["gradient"])
                if not lossless:  # without losses there is no residual
                    values = residual + values
                settings = codecs.replace(settings, step=push["step"])
                if case["codec"] == "powersgd":
                    payload, warm_start = codecs.encode_powersgd(values, settings)
                    settings = codecs.replace(settings, warm_start=warm_start)
                else:
                    payload = codecs.encode(case["codec"], values, settings)
                self.assertEqual(payload.hex(), push["payload"], f"{case['codec']}, {len(values)} values")
                residual = values - codecs.decode(payload, len(values))
                low_rank_count += payload[0] == codecs.IDS["powersgd"]
        self.assertGreaterEqual(low_rank_count, 12)

    def test_truncated_and_extended_payloads_are_malformed(self):
        for case in self.vectors["pushes"]:
            for push in case["pushes"]:
                payload, n = bytes.fromhex(push["payload"]), len(push["decoded"]) // 8
                for bad in (payload[:-1], payload + b"\0", b"", b"\x7f" + payload[1:]):
                    with self.assertRaises(indices.Malformed):
                        codecs.decode(bad, n)

    def test_deltas_move_to_the_same_floats(self):
        self.assertEqual(self.vectors["deltas"][0]["payload"], "02000000000301050a")
        for case in self.vectors["deltas"]:
            values, payload = floats(case["from"]), bytes.fromhex(case["payload"])
            deltas.apply_exact_delta(payload, values)
            self.assert_same_bits(values, floats(case["to"]), case["payload"][:20])
            for bad in (payload[:-1], payload + b"\0"):
                with self.assertRaises(indices.Malformed):
                    deltas.apply_exact_delta(bad, floats(case["from"]))

    def test_index_lists(self):
        for case in self.vectors["lists"]:
            self.assertEqual(indices.encode_list(case["indices"], case["n"]).hex(), case["list"])
            decoded = indices.decode_list(bytes.fromhex(case["list"]), case["n"])
            self.assertEqual(list(decoded), case["indices"])

    def test_value_hashes(self):
        for case in self.vectors["hashes"]:
            self.assertEqual(value_hash(floats(case["values"])), int(case["hash"]))

    def test_partitions(self):
        for case in self.vectors["partitions"]:
            tensors = [Tensor(name, tuple(shape)) for name, shape in case["tensors"]]
            partition = Partition(tensors, case["shard_size"], case["servers"])
            self.assertEqual(partition.hash, int(case["hash"]))
            shards = [{"server": shard.server, "segments": [[s.tensor, s.offset, s.count] for s in shard.segments]}
                      for shard in partition.shards]
            self.assertEqual(shards, case["shards"])

    def test_example_of_the_page(self):
        values = np.zeros(64, np.float32)
        values[[4, 41]] = 1, -2
        payload = codecs.encode("topk", values, codecs.Settings(density=2 / 64, topk_values="fp8_e5m2"))
        self.assertEqual(payload.hex(" "), "06 04 04 3c c0 24 01 05")


if __name__ == "__main__":
    WRITE_VECTORS = sys.argv.pop(1)
    unittest.main()
