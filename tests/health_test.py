"""Calls the health and reflection services of a real server, with messages of bytes, and sends it bytes that are no TLS.

    health_test SERVER THINWIRE
"""

import os
import signal
import socket
import subprocess
import sys
import tempfile
import unittest

import grpc

THINWIRE = sys.argv.pop()
SERVER = sys.argv.pop()
WAIT_SECONDS = 90  # longer than any wait takes on a busy machine

# HealthCheckResponse with `status`, the field 1.
SERVING = b"\x08\x01"
NOT_SERVING = b"\x08\x02"


class HealthTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write('name: "health"')

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, *flags):
        """Starts a server and returns its address."""
        self.log = self.path("log")
        command = [SERVER, "--config", self.path("job.textproto"), "--listen", "127.0.0.1:0", *flags]
        with open(self.log, "w", encoding="utf-8") as log:
            self.server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=log, text=True)
        self.addCleanup(self.stop)
        word, address = self.server.stdout.readline().split()
        self.assertEqual(word, "listening")
        return address

    def stop(self):
        """Ends the server and returns its exit code."""
        if self.server.poll() is None:
            self.server.send_signal(signal.SIGTERM)
        code = self.server.wait(WAIT_SECONDS)
        self.server.stdout.close()
        return code

    def test_health_changes_when_the_server_stops(self):
        with grpc.insecure_channel(self.start()) as channel:
            check = channel.unary_unary("/grpc.health.v1.Health/Check")
            self.assertEqual(check(b"", timeout=WAIT_SECONDS), SERVING)
            watch = channel.unary_stream("/grpc.health.v1.Health/Watch")(b"", timeout=WAIT_SECONDS)
            self.assertEqual(next(watch), SERVING)
            self.server.send_signal(signal.SIGTERM)
            self.assertEqual(next(watch), NOT_SERVING)
            watch.cancel()
        self.assertEqual(self.server.wait(WAIT_SECONDS), 0)

    def test_reflection_lists_the_services(self):
        with grpc.insecure_channel(self.start()) as channel:
            name = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
            list_services = b"\x3a\x01*"  # the field 7 is the string "*"
            reply = next(channel.stream_stream(name)(iter([list_services]), timeout=WAIT_SECONDS))
        for service in (b"thinwire.Control", b"thinwire.ParameterService", b"grpc.health.v1.Health",
                        b"grpc.reflection.v1alpha.ServerReflection"):
            self.assertIn(service, reply)

    def test_a_peer_cannot_fill_the_log(self):
        for words in (["init", self.path("ca")],
                      ["issue", self.path("ca"), "--role", "server", "--job", "health", "--server", "0", "--out",
                       self.path("certs")]):
            subprocess.run([THINWIRE, "certs", *words], check=True, capture_output=True, timeout=WAIT_SECONDS)
        host, port = self.start("--credentials", self.path("certs")).rsplit(":", 1)
        connections = 300
        for _ in range(connections):
            with socket.create_connection((host, int(port)), timeout=WAIT_SECONDS) as peer:
                peer.sendall(b"GET / HTTP/1.1\r\n\r\n")
                peer.recv(1000)  # the server answers with an alert or closes the connection
        self.stop()
        with open(self.log, encoding="utf-8") as log:
            lines = [line for line in log if "gRPC: " in line]
        # 20 lines at once, and then one in ten seconds.
        self.assertGreaterEqual(len(lines), 20)
        self.assertLess(len(lines), connections // 4)


if __name__ == "__main__":
    unittest.main()
