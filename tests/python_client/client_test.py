"""Trains with the Python client and real servers in every mode, with every codec and every form of parameters.

    client_test SERVER
"""

import concurrent.futures
import dataclasses
import sys
import unittest

import grpc
import numpy as np

from tests.python_client import codecs, indices
from tests.python_client.client import READ_DELTAS, READ_PUBLISHED, VERDICTS, Client
from tests.python_client.number_formats import bits_of
from tests.python_client.partition import Tensor
from tests.python_client.servers import Servers, job_config
from tests.python_client.worker import TENSORS, Worker, initial_values, make_data, softmax_loss

SERVER = ""
SHAPES = [Tensor("w", (61, 83)), Tensor("b", (37,)), Tensor("scale", ())]
RATE = np.float32(0.125)


def job(mode="sync", workers=1, servers=1, more_consistency="", optimization="", compression=""):
    return f"""
      name: "train" servers: {servers}
      consistency {{ mode: {mode} workers: {workers} {more_consistency} }}
      optimization {{ learning_rate: {RATE} {optimization} }}
      compression {{ {compression} }}
    """


def every_setting():
    """A codec's name and settings, for every codec, every value codec and both index coders."""
    for name in codecs.DENSE:
        yield name, codecs.Settings()
        yield "topk", codecs.Settings(density=0.02, topk_values=name)
    for coder in (indices.ELIAS_FANO, indices.GOLOMB_RICE):
        for density in (0.0005, 0.1, 0.6):
            yield "topk", codecs.Settings(density=density, topk_values="fp8_e4m3", topk_indices=coder)
    for values in ("fp32", "int8", "qsgd"):
        yield "randomk", codecs.Settings(density=0.05, topk_values=values)
        yield "powersgd", codecs.Settings(topk_values=values)
        yield "dct_topk", codecs.Settings(density=0.05, topk_values=values)
    yield "onebit", codecs.Settings(onebit_group=64)
    yield "qsgd", codecs.Settings(qsgd_levels=127)


class ClientTest(unittest.TestCase):
    def assert_same_bits(self, a, b, text=""):
        for one, other in zip(a, b, strict=True):
            differ = np.flatnonzero(bits_of(one.reshape(-1)) != bits_of(other.reshape(-1)))
            self.assertEqual(len(differ), 0, f"{text}: first difference at {differ[:1]}")

    def client(self, servers, tensors=TENSORS, **options):
        client = Client(servers.addresses, tensors, **{"config": servers.config, **options})
        servers.clients.append(client)
        return client

    def workers(self, servers, count, codec="fp32", **options):
        """Workers that have begun step 0."""
        workers = [Worker(self.client(servers, worker=w, **options), codec) for w in range(count)]
        for worker in workers:
            worker.begin()
        return workers

    def test_every_codec_gives_the_parameters_that_numpy_computes(self):
        examples = 48
        scale = np.float32(1 / examples)
        rng = np.random.default_rng(1)
        with Servers(SERVER, job(more_consistency="ordered_fold: true", servers=2)) as servers:
            client = self.client(servers, SHAPES)
            expected = initial_values(SHAPES)
            self.assertEqual(client.join(initial_values(SHAPES)), 0)
            client.start()
            self.assert_same_bits(client.parameters(), expected)
            used = set()
            for step, (name, settings) in enumerate(every_setting()):
                used.add(name)
                payloads = []
                for number, shard in enumerate(client.shards):
                    gradient = rng.standard_normal(len(shard.values)).astype(np.float32)
                    settings = dataclasses.replace(settings, step=step, shard=number)
                    payloads.append(codecs.encode(name, gradient, settings))
                    v = codecs.decode(payloads[-1], len(gradient))
                    x = client.partition.gather(number, expected)
                    x = x - RATE * (scale * (np.float32(examples) * v))
                    client.partition.scatter(number, x, expected)
                client.push(step, payloads, examples)
                for verdict in client.verdicts():
                    self.assertEqual(verdict.kind, VERDICTS.ACCEPT, f"{name} {settings}")
                self.assert_same_bits(client.parameters(), expected, f"{name} {settings}")
            self.assertEqual(used, set(codecs.IDS))
            self.assert_same_bits(client.masters(), expected)
            client.leave()

    def test_every_mode_trains(self):
        modes = {"sync": "", "backup": "backup: 1", "ssp": "slack: 2", "async": ""}
        steps = 25
        for mode, more in modes.items():
            with self.subTest(mode), Servers(SERVER, job(mode, 3, 2, more)) as servers:
                workers = [Worker(self.client(servers, worker=w), codec)
                           for w, codec in enumerate(["fp8_e5m2", "topk", "qsgd"])]
                with concurrent.futures.ThreadPoolExecutor() as pool:
                    for run in [pool.submit(worker.train, steps) for worker in workers]:
                        run.result()
                loss, _ = softmax_loss(self.client(servers).masters(), *make_data(seed=100))
                self.assertLess(loss, 0.3)  # from 1.4
                if mode == "sync":
                    self.assertEqual([worker.late for worker in workers], [0, 0, 0])

    def test_values_of_a_late_push_arrive_with_the_next_push(self):
        with Servers(SERVER, job("backup", 3, 1, "backup: 1")) as servers:
            fast, slow, other = self.workers(servers, 3)
            expected = [np.zeros(t.shape) for t in TENSORS]
            gradients = {worker: worker.compute() for worker in (fast, slow, other)}

            def update(weighted, weight):
                for tensor in range(len(TENSORS)):
                    expected[tensor] -= RATE * sum(n * g[tensor] for n, g in weighted) / weight

            late = gradients[slow]
            for _ in range(2):
                for worker in (fast, other):
                    worker.push(gradients[worker])
                for worker in (fast, other):
                    worker.finish_step()
                update([(32, gradients[fast]), (32, gradients[other])], 64)
                gradients = {worker: worker.compute() for worker in (fast, other)}
            slow.push(late)
            slow.finish_step()
            self.assertEqual(slow.late, len(slow.client.shards))
            self.assertEqual(slow.step, 2)
            gradients[slow] = slow.compute()
            slow.push(gradients[slow])
            slow.finish_step()
            fast.push(gradients[fast])
            fast.finish_step()
            fast.compute()
            update([(32, [a + b for a, b in zip(gradients[slow], late)]), (32, gradients[fast])], 96)
            for master, begin, moved in zip(fast.client.masters(), initial_values(), expected):
                np.testing.assert_allclose(master, begin + moved, atol=1e-5)

    def test_parameters_of_every_codec_equal_the_encoded_masters(self):
        with Servers(SERVER, job()) as servers:
            (worker,) = self.workers(servers, 1)
            for name in ("fp16", "bf16", "fp8_e5m2", "fp8_e4m3", "int8"):
                worker.client.read_codec = codecs.IDS[name]
                worker.push(worker.compute())
                worker.finish_step()
                worker.client.parameters()
                masters = worker.client.masters()
                for number, shard in enumerate(worker.client.shards):
                    values = worker.client.partition.gather(number, masters)
                    encoded = codecs.decode(codecs.encode(name, values), len(values))
                    self.assert_same_bits([shard.values], [encoded], name)

    def test_exact_deltas_give_the_masters(self):
        with Servers(SERVER, job(servers=2, compression="push: topk pull: delta")) as servers:
            (worker,) = self.workers(servers, 1, "topk", read_codec=READ_DELTAS)
            for _ in range(20):
                worker.push(worker.compute())
                worker.finish_step()
                self.assert_same_bits(worker.client.parameters(), worker.client.masters())
            self.assertGreaterEqual(worker.client.hash_count, 2 * len(worker.client.shards))

    def test_deltas_of_every_codec_give_the_published_values(self):
        for name in (*codecs.DENSE, *codecs.SPARSE):
            more = "pull_density: 0.2 pull_topk_values: fp8_e5m2" if name in codecs.SPARSE else ""
            with self.subTest(name), Servers(SERVER, job(compression=f"pull: delta_{name} {more}")) as servers:
                (worker,) = self.workers(servers, 1, read_codec=READ_DELTAS)
                for _ in range(17):
                    worker.push(worker.compute())
                    worker.finish_step()
                client = worker.client
                replica = client.parameters()
                self.assertGreaterEqual(client.hash_count, 2 * len(client.shards))
                client.read_codec = READ_PUBLISHED
                client.read_all(worker.step)
                self.assert_same_bits(client.parameters(), replica)

    def test_gtopk_returns_what_it_does_not_select(self):
        steps = 12
        optimization = "gradient_selection: gtopk selection_density: 0.1 selection_rest: workers lazy_slots: true"
        with Servers(SERVER, job(workers=2, optimization=optimization, compression="push: topk")) as servers:
            workers = self.workers(servers, 2, "topk")
            for worker in workers:
                worker.settings = dataclasses.replace(worker.settings, density=0.1)
            produced = [np.zeros(t.shape) for t in TENSORS]
            for _ in range(steps):
                for worker in workers:
                    gradients = worker.compute()
                    produced = [sum + gradient for sum, gradient in zip(produced, gradients)]
                    worker.push(gradients)
                for worker in workers:
                    worker.finish_step()
            returned = 0
            kept = [np.zeros(t.shape, np.float32) for t in TENSORS]
            for worker in workers:
                before = np.concatenate(worker.residuals)
                worker.compute()
                returned += np.count_nonzero(np.concatenate(worker.residuals) != before)
                for number, residual in enumerate(worker.residuals):
                    total = worker.client.partition.gather(number, kept) + residual
                    worker.client.partition.scatter(number, total, kept)
            self.assertGreater(returned, 0)
            # Everything that was produced is applied or in a residual.
            for begin, master, made, left in zip(initial_values(), workers[0].client.masters(), produced, kept):
                np.testing.assert_allclose(begin - master, RATE * (made - left) / 2, atol=1e-5)

    def test_a_lost_connection_loses_and_repeats_nothing(self):
        with Servers(SERVER, job(servers=2)) as servers:
            (worker,) = self.workers(servers, 1)
            client = worker.client
            for step in range(12):
                gradients = worker.compute()
                expected = [x - RATE * g for x, g in zip(client.parameters(), gradients)]
                worker.push(gradients)
                client.reconnect(step % 2)
                worker.finish_step()
                for got, wanted in zip(client.parameters(), expected):
                    np.testing.assert_allclose(got, wanted, atol=1e-6)
            client.leave()

    def test_another_job_or_model_is_refused(self):
        with Servers(SERVER, job()) as servers:
            self.workers(servers, 1)
            other = job_config(job(optimization="weight_decay: 0.5"))
            for options, problem in [
                ({"config": other}, "optimization.weight_decay"),
                ({"tensors": SHAPES}, "model"),
                ({"job": "another"}, "job"),
                ({"worker": 1}, "worker"),
                ({"initial": [2 * x for x in initial_values()]}, "first values"),
            ]:
                initial = options.pop("initial", [])
                with self.assertRaises(grpc.RpcError) as refused:
                    self.client(servers, **options).join(initial)
                self.assertIn(problem, refused.exception.details())

    def test_a_malformed_push_ends_its_stream(self):
        with Servers(SERVER, job()) as servers:
            (worker,) = self.workers(servers, 1)
            worker.compute()
            worker.client.push(0, [b"\1\2\3"] * len(worker.client.shards), 32)
            with self.assertRaises(grpc.RpcError) as ended:
                worker.client.verdicts()
            self.assertEqual(ended.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)
            self.assertIn("fp32 payload", ended.exception.details())


if __name__ == "__main__":
    SERVER = sys.argv.pop(1)
    unittest.main()
