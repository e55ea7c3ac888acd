"""A thread that sends random valid and malformed messages to a server. None of them changes the parameters."""

import collections
import random
import threading

import grpc
import numpy as np

from proto import control_pb2
from proto import parameter_service_pb2 as data_pb2
from tests.fuzz.mutations import mutate_bytes, mutate_message
from tests.python_client import codecs, indices
from tests.python_client.client import READ_DELTAS, READ_PUBLISHED, VERDICTS

WORKERS_OF_ATTACKER = 60  # the worker numbers of one attacker; a mutated push may use up a number


class Skipped(Exception):
    """The message would impersonate the honest worker."""


def drain(call):
    """Reads a call to its end."""
    for _ in call:
        pass


class Attacker(threading.Thread):
    def __init__(self, seed, number, address, neighbour, stop):
        super().__init__(daemon=True)
        self.rng = random.Random(f"{seed}/{number}")
        self.number = number
        self.worker = 0
        self.neighbour = neighbour
        self.partition = neighbour.client.partition
        self.request = control_pb2.JoinRequest()
        self.request.CopyFrom(neighbour.client.request)
        self.request.incarnation = 0
        self.stop = stop
        self.step = 0
        self.joined = control_pb2.JoinReply()
        self.channel = grpc.insecure_channel(address, options=[("grpc.use_local_subchannel_pool", 1)])
        self.abandoned = collections.deque()
        self.log = collections.deque(maxlen=25)
        self.counts = collections.Counter()
        self.failure = None

    def run(self):
        actions = [self.stream] * 40 + [self.control] * 10 + [self.join_job] * 6 + [
            self.flood_messages, self.flood_streams, self.flood_entries, self.large_message, self.compressed,
            self.unknown_method, self.stream_that_never_reads]
        try:
            while not self.stop.is_set():
                action = self.rng.choice(actions)
                self.log.append(action.__name__)
                self.counts[action.__name__] += 1
                try:
                    action()
                except Skipped:
                    self.counts["skipped"] += 1
                except grpc.RpcError as error:
                    self.counts[str(error.code())] += 1
        except Exception as error:  # a bug of this program, unless the channel is gone
            if not self.stop.is_set():
                self.failure = error
        for call in self.abandoned:
            call.cancel()

    def close(self):
        self.channel.close()

    # Calls with bytes, so that a message may be malformed.

    def unary(self, method, data, timeout=0.5):
        return self.channel.unary_unary("/thinwire.Control/" + method)(data, timeout=timeout)

    def open(self, messages, **options):
        return self.channel.stream_stream("/thinwire.ParameterService/Exchange")(iter(messages), timeout=2, **options)

    def abandon(self, call):
        """Keeps a call open and never reads from it again; only the newest calls are kept."""
        self.abandoned.append(call)
        if len(self.abandoned) > 20:
            self.abandoned.popleft().cancel()

    # Actions.

    def join_job(self):
        request = control_pb2.JoinRequest()
        request.CopyFrom(self.request)
        request.worker = 1 + self.number * WORKERS_OF_ATTACKER + self.rng.randrange(WORKERS_OF_ATTACKER)
        if self.rng.random() < 0.6:
            for _ in range(self.rng.choice((1, 1, 2, 5))):
                mutate_message(self.rng, request)
        elif self.rng.random() < 0.3:
            request.worker, request.incarnation = self._almost_neighbour()
        data = request.SerializeToString()
        if self.rng.random() < 0.1:
            data = mutate_bytes(self.rng, data)
        self._forbid_impersonation(control_pb2.JoinRequest, data)
        reply = control_pb2.JoinReply.FromString(self.unary("Join", data))
        self.worker, self.joined = request.worker, reply
        self.step = max([0, *(max(state.predecessor_next, state.frontier) for state in reply.shards)])
        self.counts["joined"] += 1

    def control(self):
        name, kind = self.rng.choice([
            ("Heartbeat", control_pb2.HeartbeatRequest), ("Leave", control_pb2.LeaveRequest),
            ("Status", control_pb2.StatusRequest), ("Masters", control_pb2.MastersRequest)])
        request = kind()
        if hasattr(request, "worker"):
            request.worker, request.incarnation = self.worker, self.joined.incarnation
            if self.rng.random() < 0.5:
                mutate_message(self.rng, request)
            elif self.rng.random() < 0.2:
                request.worker, request.incarnation = self._almost_neighbour()
        data = request.SerializeToString()
        if self.rng.random() < 0.2:
            data = mutate_bytes(self.rng, data)
        self._forbid_impersonation(kind, data)
        if name == "Masters":
            call = self.channel.unary_stream("/thinwire.Control/Masters")(data, timeout=0.5)
            for _ in call:
                if self.rng.random() < 0.3:
                    return call.cancel()
            return None
        return self.unary(name, data)

    def stream(self):
        messages = [self.message() for _ in range(self.rng.choice((1, 1, 2, 5, 20)))]
        messages = [data for data in messages if self._is_harmless(data)]
        call = self.open(messages)
        end = self.rng.randrange(4)
        if end == 0:
            return call.cancel()
        if end == 1:
            return self.abandon(call)
        for data in call:
            reply = data_pb2.ServerMessage.FromString(data)
            self.counts["verdicts"] += len(reply.verdicts)
            for verdict in reply.verdicts:
                self.counts[VERDICTS.Kind.Name(verdict.kind)] += 1
            self.counts["parameters"] += len(reply.parameters)
        self.counts["streams that ended with OK"] += 1
        return None

    def flood_messages(self):
        call = self.open([self._head().SerializeToString()] * self.rng.choice((100, 3000)))
        if self.rng.random() < 0.5:
            self.abandon(call)
        else:
            drain(call)

    def flood_streams(self):
        calls = [self.open([self._head().SerializeToString()]) for _ in range(self.rng.choice((10, 100)))]
        for call in calls:
            if self.rng.random() < 0.8:
                call.cancel()
            else:
                self.abandon(call)

    def flood_entries(self):
        entries = data_pb2.WorkerMessage()
        if self.rng.random() < 0.5:
            entries.reads.append(self.read())
        else:
            entries.pushes.add(shard=0, step=self.step, read_codec=1)
        many = entries.SerializeToString() * self.rng.choice((1000, 65535, 65536, 65537))
        drain(self.open([self._head().SerializeToString() + many]))

    def large_message(self):
        message = self._head()
        message.seeds.add(shard=self.rng.randrange(4), payload=b"\1" * self.rng.choice((1 << 20, 4 << 20, 5 << 20)))
        drain(self.open([message.SerializeToString()] * 3))

    def compressed(self):
        drain(self.open([self.message()[:1000]], compression=grpc.Compression.Gzip))

    def unknown_method(self):
        self.unary("Nothing", self.rng.randbytes(20))

    def stream_that_never_reads(self):
        message = self._head()
        for number in range(len(self.partition.shards)):
            message.reads.add(shard=number, step=self.step, read_codec=self.rng.choice((1, READ_PUBLISHED)))
        self.abandon(self.open([message.SerializeToString()] * 300))

    # Messages.

    def _head(self):
        return data_pb2.WorkerMessage(worker=self.worker, incarnation=self.joined.incarnation,
                                      generation=self.joined.generation, epoch=self.joined.epoch)

    def read(self):
        return data_pb2.Read(shard=self.rng.randrange(len(self.partition.shards)), step=self.step,
                             held_version=self.rng.choice((0, self.neighbour.steps)),
                             read_codec=self.rng.choice((1, 2, 3, 4, 5, 7, READ_DELTAS, READ_PUBLISHED)))

    def push(self):
        """A push of zeros."""
        shard = self.rng.randrange(len(self.partition.shards))
        count = self.partition.shards[shard].count
        name = self.rng.choice(list(codecs.IDS))
        payload = codecs.encode(name, np.zeros(count, np.float32), codecs.Settings(topk_values="fp8_e5m2"))
        return data_pb2.Push(shard=shard, step=self.step, examples=self.rng.choice((1, 32, 2**32 - 1)),
                             late_examples=self.rng.choice((0, 5)), computed_version=self.rng.choice((0, 10)),
                             held_version=self.neighbour.steps, read_codec=1, payload=payload)

    def message(self):
        message = self._head()
        for _ in range(self.rng.choice((0, 1, 1, 3))):
            message.reads.append(self.read())
        for _ in range(self.rng.choice((0, 1, 2))):
            message.pushes.append(self.push())
            self.step += self.rng.choice((0, 1, 1))
        if self.rng.random() < 0.2:
            message.seeds.add(shard=0, payload=codecs.encode("fp32", np.zeros(self.partition.shards[0].count, np.float32)))
        if self.rng.random() < 0.4:
            for _ in range(self.rng.choice((1, 1, 3))):
                mutate_message(self.rng, message)
        elif self.rng.random() < 0.1:
            message.worker, message.incarnation = self._almost_neighbour()
        data = message.SerializeToString()
        if self.rng.random() < 0.1:
            data = mutate_bytes(self.rng, data)
        return data

    def _almost_neighbour(self):
        """The honest worker's number with an incarnation that the lead has not assigned to it."""
        others = {0, self.neighbour.incarnation + 1, self.neighbour.incarnation + 2, 2**63, 2**64 - 1}
        return self.neighbour.client.worker, self.rng.choice(sorted(others))

    # Messages that a server has no way to tell from those of an honest worker are not sent.

    def _is_neighbour(self, message):
        return message.worker == self.neighbour.client.worker and message.incarnation == self.neighbour.incarnation

    def _forbid_impersonation(self, kind, data):
        try:
            message = kind.FromString(data)
        except Exception:
            return
        if hasattr(message, "worker") and self._is_neighbour(message):
            raise Skipped()

    def _is_harmless(self, data):
        try:
            message = data_pb2.WorkerMessage.FromString(data)
        except Exception:
            return True
        return not self._is_neighbour(message) and all(self._changes_nothing(push) for push in message.pushes)

    def _changes_nothing(self, push):
        if push.examples == 0 or push.shard >= len(self.partition.shards):
            return True
        try:
            with np.errstate(all="ignore"):
                values = codecs.decode(push.payload, self.partition.shards[push.shard].count)
        except (indices.Malformed, ValueError, IndexError, OverflowError):
            return True
        return not values.any() or not np.isfinite(values).all()
