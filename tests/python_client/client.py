"""A worker's side of the protocol: docs/wire.md. One object is one worker process; its caller is one thread."""

import queue
import threading

import grpc
import numpy as np

from proto import control_pb2, control_pb2_grpc
from proto import parameter_service_pb2 as data_pb2
from proto import parameter_service_pb2_grpc as data_pb2_grpc
from tests.python_client import codecs, deltas, indices
from tests.python_client.partition import Partition, model_hash, value_hash

READ_DELTAS = 64
READ_PUBLISHED = 65
MESSAGE_BYTES = 1 << 20
VERDICTS = data_pb2.PushVerdict
PARAMETERS = data_pb2.Parameters


class _Server:
    """The connections to one server, and its stream."""

    def __init__(self, address):
        own_connection = [("grpc.use_local_subchannel_pool", 1)]
        self.control_channel = grpc.insecure_channel(address, options=own_connection)
        self.data_channel = grpc.insecure_channel(address, options=own_connection)
        self.control = control_pb2_grpc.ControlStub(self.control_channel)
        self.data = data_pb2_grpc.ParameterServiceStub(self.data_channel)
        self.joined = None
        self.call = None
        self.requests = None
        self.receiver = None  # the thread that reads the stream
        self.failure = None  # the error that ended the stream
        self.seeded = set()  # the shards whose first values were sent on this stream

    def open(self, timeout):
        self.failure = None
        self.seeded = set()
        self.requests = queue.SimpleQueue()
        self.call = self.data.Exchange(iter(self.requests.get, None), timeout=timeout)

    def close(self):
        self.control_channel.close()
        self.data_channel.close()


class _Shard:
    """What the worker knows of one shard."""

    def __init__(self, count):
        self.values = np.zeros(count, np.float32)
        self.version = None  # the version of `values`; None: no values
        self.frontier = 0
        self.selected = None  # the indices that gTop-k selected; None: not that kind of job or shard
        self.read = None  # the step of the unanswered read
        self.push = None  # the push without a verdict
        self.verdict = None  # the last verdict


class Client:
    def __init__(self, addresses, tensors, *, job="train", worker=0, read_codec=codecs.IDS["fp32"], shard_size=0,
                 planned_examples=0, config=None, timeout=60):
        self.partition = Partition(tensors, shard_size, len(addresses))
        self.worker = worker
        self.read_codec = read_codec
        self.timeout = timeout
        self.servers = [_Server(address) for address in addresses]
        self.shards = [_Shard(shard.count) for shard in self.partition.shards]
        self.first_step = 0
        self.hash_count = 0  # the number of hashes that were compared
        self._initial = None
        self._beating = threading.Event()
        self._changed = threading.Condition()  # guards the shards; signals messages and ends of streams
        self.request = control_pb2.JoinRequest(
            job=job, worker=worker, shard_size=shard_size, servers=len(addresses),
            partition_hash=self.partition.hash, planned_examples=planned_examples, config=config,
            tensors=[control_pb2.Tensor(name=t.name, shape=t.shape) for t in tensors])

    # A worker's life: join, start, then for each step parameters, push and verdicts; leave.

    def join(self, initial):
        """Joins all servers. Returns the worker's first step. `initial`, the first values, has one array per tensor."""
        self._initial = initial
        if initial:
            self.request.initial_hash = model_hash(initial)
        for server in self.servers:
            server.joined = server.control.Join(self.request, timeout=self.timeout)
            self.request.incarnation = server.joined.incarnation
            self.request.run = server.joined.run
        replies = [server.joined for server in self.servers]
        states = [state for reply in replies for state in reply.shards]
        in_round = any(reply.by_round and state.open for reply in replies for state in reply.shards)
        frontier = max(state.frontier for state in states)
        self.first_step = max(
            max(max(state.predecessor_next, state.largest_next) for state in states),
            frontier + (in_round and frontier != (replies[0].dealt_until or None)))
        threading.Thread(target=self._send_heartbeats, daemon=True).start()
        return self.first_step

    def start(self):
        """Opens the streams and reads the first step."""
        for shard in self.shards:
            shard.read = self.first_step
        for number in range(len(self.servers)):
            self._open(number)

    def reconnect(self, server_number):
        """Replaces a stream, as after a lost connection."""
        with self._changed:
            self.servers[server_number].call.cancel()
            self._open(server_number)

    def parameters(self):
        """Waits until all reads are answered. Returns one array per tensor."""
        self._wait(lambda shard: shard.read is None)
        arrays = [np.zeros(tensor.shape, np.float32) for tensor in self.partition.tensors]
        for number, shard in enumerate(self.shards):
            self.partition.scatter(number, shard.values, arrays)
        return arrays

    def push(self, step, payloads, examples, late_examples=None):
        """Pushes one payload per shard; None pushes weight 0."""
        with self._changed:
            for server_number, server in enumerate(self.servers):
                message = self._message(server)
                for number in self.partition.shards_of(server_number):
                    shard = self.shards[number]
                    shard.push = data_pb2.Push(
                        shard=number, step=step, computed_version=shard.version, held_version=shard.version,
                        read_codec=self._read_codec(shard))
                    if payloads[number] is not None:
                        shard.push.examples = examples
                        shard.push.late_examples = late_examples[number] if late_examples else 0
                        shard.push.payload = payloads[number]
                    shard.read = step + 1
                    shard.verdict = None
                    message.pushes.append(shard.push)
                    message = self._send_if_full(server, message)
                server.requests.put(message)

    def verdicts(self):
        """Waits until all pushes are judged. Returns one PushVerdict per shard."""
        self._wait(lambda shard: shard.push is None)
        return [shard.verdict for shard in self.shards]

    def read_all(self, step):
        """Reads all shards for a step, such as after a late push."""
        with self._changed:
            for server_number, server in enumerate(self.servers):
                message = self._message(server)
                message.reads.extend(self._read(number, step) for number in self.partition.shards_of(server_number))
                server.requests.put(message)

    def leave(self):
        self._beating.set()
        for server in self.servers:
            request = control_pb2.LeaveRequest(worker=self.worker, incarnation=self.request.incarnation,
                                               run=self.request.run)
            server.control.Leave(request, timeout=self.timeout)
        for server in self.servers:
            server.requests.put(None)
            server.receiver.join(self.timeout)
        self.close()

    def close(self):
        """Ends the process without a word to the servers."""
        self._beating.set()
        for server in self.servers:
            if server.call is not None:
                server.call.cancel()
            server.close()

    def masters(self):
        """The exact parameters of all servers, one array per tensor."""
        arrays = {t.name: np.zeros(t.count, np.float32) for t in self.partition.tensors}
        for server in self.servers:
            for chunk in server.control.Masters(control_pb2.MastersRequest(), timeout=self.timeout):
                values = np.frombuffer(chunk.values, "<f4")
                arrays[chunk.tensor][chunk.offset : chunk.offset + len(values)] = values
        return [arrays[t.name].reshape(t.shape) for t in self.partition.tensors]

    # Messages to a server.

    def _open(self, server_number):
        """Opens a stream. Sends all pushes without a verdict and repeats all reads without an answer."""
        server = self.servers[server_number]
        server.open(self.timeout)
        message = self._message(server)
        for number in self.partition.shards_of(server_number):
            shard = self.shards[number]
            if shard.push is not None:
                message.pushes.append(shard.push)
            elif shard.read is not None:
                message.reads.append(self._read(number, shard.read))
            message = self._send_if_full(server, message)
        server.requests.put(message)
        server.receiver = threading.Thread(target=self._receive, args=(server, server.call), daemon=True)
        server.receiver.start()

    def _message(self, server):
        return data_pb2.WorkerMessage(worker=self.worker, incarnation=self.request.incarnation,
                                      generation=server.joined.generation, epoch=server.joined.epoch)

    def _send_if_full(self, server, message):
        """Sends a message of about MESSAGE_BYTES. Returns the message to fill next."""
        if message.ByteSize() < MESSAGE_BYTES:
            return message
        server.requests.put(message)
        return self._message(server)

    def _send_seeds(self, server, numbers):
        """Sends the first values that the server requested, once per stream."""
        message = self._message(server)
        for number in set(numbers) - server.seeded:
            server.seeded.add(number)
            values = self.partition.gather(number, self._initial)
            message.seeds.add(shard=number, payload=codecs.encode("fp32", values))
            message = self._send_if_full(server, message)
        if message.seeds:
            server.requests.put(message)

    def _read(self, number, step):
        shard = self.shards[number]
        shard.read = step
        return data_pb2.Read(shard=number, step=step, held_version=shard.version or 0,
                             read_codec=self._read_codec(shard))

    def _read_codec(self, shard):
        if self.read_codec == READ_DELTAS and shard.version is None:
            return READ_PUBLISHED
        return self.read_codec

    def _send_heartbeats(self):
        lease = min(server.joined.lease_seconds for server in self.servers)
        while not self._beating.wait(lease / 3):
            for server in self.servers:
                request = control_pb2.HeartbeatRequest(worker=self.worker, incarnation=self.request.incarnation,
                                                       epoch=server.joined.epoch)
                try:
                    server.control.Heartbeat(request, timeout=lease)
                except (grpc.RpcError, ValueError):
                    return  # the stream tells the worker why

    # Messages from a server.

    def _wait(self, done):
        for server_number, server in enumerate(self.servers):
            shards = [self.shards[number] for number in self.partition.shards_of(server_number)]
            with self._changed:
                self._changed.wait_for(lambda: server.failure is not None or all(done(shard) for shard in shards))
                if not all(done(shard) for shard in shards):
                    raise server.failure

    def _receive(self, server, call):
        """Handles the messages of a stream until it ends."""
        failure = EOFError("the server ended the stream")
        try:
            for message in call:
                with self._changed:
                    self._handle(server, message)
                    self._changed.notify_all()
        except Exception as error:  # _wait raises it
            failure = error
        with self._changed:
            if server.call is call:
                server.failure = failure
            self._changed.notify_all()

    def _handle(self, server, message):
        assert message.epoch == server.joined.epoch
        for verdict in message.verdicts:
            shard = self.shards[verdict.shard]
            if shard.push is not None and shard.push.step == verdict.step:
                shard.push, shard.verdict = None, verdict
        for entry in message.parameters:
            self._merge(server, entry)
        self._send_seeds(server, [wait.shard for wait in message.waits if wait.seed])

    def _merge(self, server, entry):
        shard = self.shards[entry.shard]
        if shard.read != entry.step:
            return
        if not self._apply(shard, entry):
            shard.version = None
            message = self._message(server)
            message.reads.append(self._read(entry.shard, entry.step))
            server.requests.put(message)
            return
        if not entry.more:
            shard.read = None
            shard.frontier = entry.frontier
            shard.selected = indices.decode_list(entry.selected, len(shard.values)) if entry.selected else None

    def _apply(self, shard, entry):
        """Changes the shard's values. Returns False if the shard must be read in full."""
        if entry.kind != PARAMETERS.FULL:
            if shard.version is None or (entry.base_version != shard.version and entry.version > shard.version):
                return False
            if entry.version <= shard.version:
                return True
        if entry.kind == PARAMETERS.FULL:
            shard.values[:] = codecs.decode(entry.payload, len(shard.values))
        elif entry.kind == PARAMETERS.ADD:
            codecs.add(entry.payload, shard.values)
        else:
            deltas.apply_exact_delta(entry.payload, shard.values)
        shard.version = entry.version
        if entry.published_hash:
            self.hash_count += 1
            return entry.published_hash == value_hash(shard.values)
        return True
