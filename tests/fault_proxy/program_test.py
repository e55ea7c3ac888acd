"""Tests the program fault_proxy: its flags, its commands and its output."""

import signal
import socket
import subprocess
import sys
import threading
import unittest

PROGRAM = sys.argv.pop(1)


class EchoServer:
    """Echoes the bytes of every connection."""

    def __init__(self):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            connection, _ = self.listener.accept()
            threading.Thread(target=self.echo, args=(connection,), daemon=True).start()

    def echo(self, connection):
        try:
            while received := connection.recv(4096):
                connection.sendall(received)
        except ConnectionError:
            pass
        connection.close()


class ProgramTest(unittest.TestCase):
    def start(self, *flags):
        """Starts the program. Returns the process and the address on which it listens."""
        process = subprocess.Popen([PROGRAM, *flags], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        line = process.stdout.readline()
        self.assertTrue(line.startswith("listening 127.0.0.1:"), line)
        return process, line.split()[1]

    def connect(self, address):
        host, port = address.split(":")
        connection = socket.create_connection((host, int(port)), timeout=60)
        self.addCleanup(connection.close)
        return connection

    def run_program(self, *flags):
        return subprocess.run([PROGRAM, *flags], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60)

    def test_commands_change_the_faults(self):
        process, address = self.start("--to", EchoServer().address, "--latency", "5ms", "--bandwidth", "100Mbit")
        connection = self.connect(address)
        connection.sendall(b"first")
        self.assertEqual(connection.recv(5), b"first")
        process.stdin.write("explode\nreset\n")
        process.stdin.flush()
        with self.assertRaises(ConnectionResetError):
            connection.recv(1)
        after = self.connect(address)
        after.sendall(b"second")
        self.assertEqual(after.recv(6), b"second")
        process.send_signal(signal.SIGTERM)
        output, log = process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)
        self.assertRegex(output, r"^connections 2, resets 1, bytes up \d+, bytes down \d+\n$")
        self.assertIn("fault_proxy: command: unknown (expected latency, ", log)

    def test_a_timed_command_is_applied(self):
        process, address = self.start("--to", EchoServer().address, "--cut", "both", "--at", "100ms restore")
        connection = self.connect(address)
        connection.sendall(b"held")
        self.assertEqual(process.stdout.readline(), "restore\n")
        self.assertEqual(connection.recv(4), b"held")
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        self.assertEqual(process.returncode, 0)

    def test_wrong_flags_are_named(self):
        cases = [
            (["--to", "127.0.0.1:1", "--latency", "fast"],
             "fault_proxy: --latency: wrong value (expected a duration from 0 to 1h such as 80ms, got \"fast\")"),
            (["--to", "127.0.0.1:1", "--at", "cut both"],
             "--at: wrong value (expected a duration and a command such as \"5s cut both\", got \"cut both\")"),
            (["--to", "127.0.0.1:1", "--at", "5s cut"], "cut: wrong value (expected up, down or both, got \"\")"),
            (["--to", "nowhere"], "--to: wrong value (expected host:port, got \"nowhere\")"),
        ]
        for flags, expected in cases:
            run = self.run_program(*flags)
            self.assertEqual(run.returncode, 78, flags)
            self.assertIn(expected, run.stderr)
        self.assertEqual(self.run_program().returncode, 64)
        self.assertEqual(self.run_program("--to", "127.0.0.1:1", "--explode").returncode, 64)
        self.assertEqual(self.run_program("--help").returncode, 0)


if __name__ == "__main__":
    unittest.main()
