"""Sends a real server frames of HTTP/2 that no gRPC client sends, in plaintext and over mutual TLS, and checks that the server
survives, answers others, and gives the memory back. docs/security.md describes what such a peer can do all the same.

    http2_test SERVER THINWIRE
"""

import os
import socket
import ssl
import struct
import subprocess
import sys
import tempfile
import time
import unittest

THINWIRE = sys.argv.pop()
SERVER = sys.argv.pop()
WAIT_SECONDS = 90  # longer than any wait takes on a busy machine

DATA, HEADERS, RST_STREAM, SETTINGS, GOAWAY, CONTINUATION = 0, 1, 3, 4, 7, 9
END_STREAM, END_HEADERS, ACK = 1, 4, 1


def frame(kind, flags, stream, body=b""):
    return struct.pack(">I", len(body))[1:] + bytes([kind, flags]) + struct.pack(">I", stream) + body


def integer(value, first=0):
    """An integer with a prefix of seven bits, as in HPACK."""
    if value < 127:
        return bytes([first | value])
    rest, value = [first | 127], value - 127
    while value >= 128:
        rest.append(value % 128 | 128)
        value //= 128
    return bytes([*rest, value])


def header(key, value):
    return b"\x00" + integer(len(key)) + key + integer(len(value)) + value


def headers(path=b"/thinwire.Control/Status", scheme=b"http", te=b"trailers"):
    fields = [(b":method", b"POST"), (b":scheme", scheme), (b":path", path), (b":authority", b"x"),
              (b"content-type", b"application/grpc"), (b"te", te)]
    return b"".join(header(*field) for field in fields)


class Peer:
    """A connection that sends whatever it is told to."""

    def __init__(self, address, credentials):
        host, port = address.split(":")
        self.socket = socket.create_connection((host, int(port)), timeout=WAIT_SECONDS)
        if credentials:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
            context.load_verify_locations(f"{credentials}/ca.pem")
            context.load_cert_chain(f"{credentials}/cert.pem", f"{credentials}/key.pem")
            context.set_alpn_protocols(["h2"])
            self.socket = context.wrap_socket(self.socket, server_hostname="server-0.train.thinwire")
        self.received = b""
        self.send(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(SETTINGS, 0, 0))
        self.read_until(lambda kind, flags, stream: kind == SETTINGS and not flags & ACK)
        self.send(frame(SETTINGS, ACK, 0))

    def send(self, frames):
        self.socket.sendall(frames)

    def read_until(self, condition):
        """Reads frames up to one with this condition. Returns False if the server closes the connection before."""
        while True:
            while len(self.received) >= 9 + (length := int.from_bytes(self.received[:3], "big") if len(self.received) >= 9 else 9):
                kind, flags, stream = self.received[3], self.received[4], int.from_bytes(self.received[5:9], "big")
                self.received = self.received[9 + length:]
                if condition(kind, flags, stream):
                    return True
            try:
                data = self.socket.recv(65536)
            except OSError:
                return False
            if not data:
                return False
            self.received += data

    def call(self, block, stream=1):
        """Sends a call with these headers and waits for its end. Returns False if the connection ends before."""
        try:
            self.send(frame(HEADERS, END_HEADERS, stream, block) + frame(DATA, END_STREAM, stream, b"\0" * 5))
        except OSError:
            return False
        return self.read_until(lambda kind, flags, of: of == stream and (kind == RST_STREAM or flags & END_STREAM))


class Http2Test(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write('name: "train"')
        certs = [["init"], ["issue", "--role", "server", "--job", "train", "--server", "0", "--out", self.path("server")],
                 ["issue", "--role", "viewer", "--job", "train", "--out", self.path("viewer")]]
        for command in certs:
            subprocess.run([THINWIRE, "certs", command[0], self.path("ca"), *command[1:]], check=True, capture_output=True)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, tls):
        """Starts a server. Returns a function that connects to it."""
        command = [SERVER, "--config", self.path("job.textproto"), "--listen", "127.0.0.1:0"]
        command += ["--credentials", self.path("server")] if tls else []
        with open(self.path("log"), "w", encoding="utf-8") as log:
            self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        server = self.server
        self.addCleanup(lambda: (server.kill(), server.wait(), server.stdout.close()))
        address = self.server.stdout.readline().split()[1]
        return lambda: Peer(address, self.path("viewer") if tls else "")

    def memory(self):
        with open(f"/proc/{self.server.pid}/status", encoding="utf-8") as status:
            return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))

    def test_malformed_headers_above_the_limit_end_no_process(self):
        # The headers of CVE-2023-1428. The last field exceeds the limit of 8 KiB.
        blocks = [headers(te=b"x"), headers(scheme=b"ftp"), headers() + header(b"grpclb_client_stats", b"x")]
        for tls in (False, True):
            connect = self.start(tls)
            for block in blocks:
                for size in (100, 9000, 12000):
                    connect().call(block + header(b"x", b"a" * size))
                    self.assertTrue(connect().call(headers()))
            self.assertIsNone(self.server.poll())

    def test_a_header_without_end_ends_with_its_connection(self):
        # The vectors of CVE-2023-33953: a string and a number without end, and fields without end, in many frames.
        starts = {b"a": header(b"y", b"")[:-1] + integer(1 << 30), b"\x80": b"\x00\x7f", header(b"k", b""): b""}
        connect = self.start(tls=True)
        for more, start in starts.items():
            peer = connect()
            try:
                peer.send(frame(HEADERS, 0, 1, headers() + start))
                for _ in range(100):
                    peer.send(frame(CONTINUATION, 0, 1, more * (16000 // len(more))))
            except OSError:
                pass
            self.assertTrue(connect().call(headers()))
            peer.socket.close()
        self.assertLess(self.memory(), 100 << 20)

    def test_too_many_open_calls_end_the_connection(self):
        connect = self.start(tls=True)
        peer = connect()
        calls = [frame(HEADERS, END_HEADERS, 1 + 2 * i, headers()) for i in range(1000)]
        try:
            peer.send(b"".join(calls))
        except OSError:
            pass
        self.assertFalse(peer.read_until(lambda *_: False))
        self.assertTrue(connect().call(headers()))

    def test_the_memory_of_reset_calls_is_given_back(self):
        connect = self.start(tls=False)
        before = self.memory()
        for _ in range(2):
            peer = connect()
            for first in range(0, 20000, 500):
                streams = range(1 + 2 * first, 1 + 2 * (first + 500), 2)
                peer.send(b"".join(frame(HEADERS, END_HEADERS | END_STREAM, stream, headers()) +
                                   frame(RST_STREAM, 0, stream, struct.pack(">I", 8)) for stream in streams))
            self.assertTrue(connect().call(headers()))
            self.assertTrue(peer.call(headers(), stream=40001))
            peer.socket.close()
        end = time.monotonic() + WAIT_SECONDS
        while self.memory() > before + (100 << 20) and time.monotonic() < end:
            time.sleep(0.5)
        self.assertLess(self.memory(), before + (100 << 20))


if __name__ == "__main__":
    unittest.main()
