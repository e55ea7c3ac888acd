"""Rounds without thinwire, for comparison on the same network: plain TCP, and PyTorch's all-reduce over gloo.

    floor_worker.py serve --listen HOST:PORT
    floor_worker.py tcp --to HOST:PORT --push BYTES --pull BYTES
    floor_worker.py allreduce --rank 0 --workers 2 --address HOST:PORT --push BYTES

serve prints "listening HOST:PORT" and answers connections until it is killed. In a round of tcp, the worker sends --push bytes in
pieces, over --connections connections; the server answers each piece with its share of --pull bytes, when the whole piece has arrived.
In a round of allreduce, all ranks sum --push bytes of floats. Each round begins with a sleep of --compute_seconds. Both print the JSON line {"seconds": [...]}.
"""

import argparse
import json
import os
import socket
import struct
import threading
import time

HEADER = struct.Struct("<QQ")  # the bytes of a piece and of its answer


def split(text):
    host, port = text.rsplit(":", 1)
    return host, int(port)


def receive(connection, count, buffer):
    """Receives COUNT bytes into BUFFER, and overwrites earlier ones if they do not fit. Raises EOFError if the connection ends."""
    while count > 0:
        got = connection.recv_into(buffer, min(count, len(buffer)))
        if got == 0:
            raise EOFError
        count -= got


def answer(connection):
    buffer = bytearray(1 << 20)
    try:
        piece, reply = HEADER.unpack(connection.recv(HEADER.size, socket.MSG_WAITALL))
        payload = bytes(reply)
        while True:
            receive(connection, piece, buffer)
            connection.sendall(payload)
    except (EOFError, ConnectionError, struct.error):  # struct.error: the connection ended before the header
        pass


def serve(options):
    listener = socket.create_server(split(options.listen))
    print("listening", options.listen, flush=True)
    while True:
        connection, _ = listener.accept()
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        threading.Thread(target=answer, args=(connection,), daemon=True).start()


def measure(options, work):
    seconds = []
    for number in range(options.warm_rounds + options.rounds):
        begin = time.monotonic()
        time.sleep(options.compute_seconds)
        work()
        if number >= options.warm_rounds:
            seconds.append(time.monotonic() - begin)
    print(json.dumps({"seconds": seconds}), flush=True)


def tcp(options):
    connections = [socket.create_connection(split(options.to)) for _ in range(options.connections)]
    pieces = max(1, -(-options.push // options.connections // (1 << 20)))
    piece, reply = (-(-total // options.connections // pieces) for total in (options.push, options.pull))
    payload = bytes(pieces * piece)
    for connection in connections:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(HEADER.pack(piece, reply))

    def work():
        threads = [threading.Thread(target=connection.sendall, args=(payload,)) for connection in connections]
        threads += [threading.Thread(target=receive, args=(connection, pieces * reply, bytearray(1 << 20))) for connection in connections]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    measure(options, work)


def allreduce(options):
    import torch
    import torch.distributed

    torch.set_num_threads(1)
    os.environ["MASTER_ADDR"], os.environ["MASTER_PORT"] = options.address.rsplit(":", 1)
    torch.distributed.init_process_group("gloo", rank=options.rank, world_size=options.workers)
    values = torch.zeros(options.push // 4)
    measure(options, lambda: torch.distributed.all_reduce(values))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("verb", choices=["serve", "tcp", "allreduce"])
    parser.add_argument("--listen")
    parser.add_argument("--to")
    parser.add_argument("--address")
    parser.add_argument("--rank", type=int, default=0)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--push", type=int, default=1 << 20)
    parser.add_argument("--pull", type=int, default=1 << 20)
    parser.add_argument("--connections", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--warm_rounds", type=int, default=2)
    parser.add_argument("--compute_seconds", type=float, default=0)
    options = parser.parse_args()
    {"serve": serve, "tcp": tcp, "allreduce": allreduce}[options.verb](options)


if __name__ == "__main__":
    main()
