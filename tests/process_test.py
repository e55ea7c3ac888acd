"""Takes terminals, pipes and standard files away from a real server, a real worker and `thinwire train`.

    process_test SERVER WORKER THINWIRE
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import unittest

THINWIRE = sys.argv.pop()
WORKER = sys.argv.pop()
SERVER = sys.argv.pop()
WAIT_SECONDS = 90  # longer than any wait takes on a busy machine

JOB = """
servers: 1 consistency { workers: 1 }
task { model: softmax train_examples: 2000 test_examples: 100 batch_size: 20 epochs: 2 }
"""


class ProcessTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write(JOB)

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def start(self, command, **files):
        """Starts a program. Its output is a pipe that this process reads, if FILES does not say otherwise."""
        files = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, **files}
        process = subprocess.Popen(command, text=True, **files)
        self.addCleanup(self.end, process)
        return process

    def end(self, process):
        process.kill()
        process.wait(WAIT_SECONDS)
        for file in (process.stdout, process.stderr):
            if file is not None:
                file.close()

    def start_server(self, **files):
        """Starts a server that has listened. Returns its process and its address."""
        server = self.start([SERVER, "--config", self.path("job.textproto"), "--listen", "127.0.0.1:0"], **files)
        word, address = server.stdout.readline().split()
        self.assertEqual(word, "listening")
        return server, address

    def start_worker(self, address, *flags, **files):
        return self.start([WORKER, "--config", self.path("job.textproto"), "--addresses", address, *flags], **files)

    def stop(self, process, number=signal.SIGTERM):
        """Sends a signal and returns the exit code."""
        process.send_signal(number)
        return process.wait(WAIT_SECONDS)

    def test_programs_go_on_when_the_readers_of_their_output_end(self):
        server, address = self.start_server()
        server.stdout.close()
        server.stderr.close()
        worker = self.start_worker(address)
        worker.stdout.readline()
        worker.stdout.close()
        worker.stderr.close()
        self.assertEqual(worker.wait(WAIT_SECONDS), 0)
        self.assertIsNone(server.poll())
        self.assertEqual(self.stop(server), 0)

    def test_closed_standard_files_are_replaced(self):
        def close_files():
            os.close(0)
            os.close(2)

        server, address = self.start_server(stdin=None, stderr=None, preexec_fn=close_files)
        worker = self.start_worker(address, "--delay", "1h", stdin=None, stderr=None, preexec_fn=close_files)
        self.assertIn("joined", json.loads(worker.stdout.readline()))
        for process in (server, worker):
            for file in (0, 2):
                self.assertEqual(os.readlink(f"/proc/{process.pid}/fd/{file}"), "/dev/null")

    def test_a_closed_terminal_stops_programs_in_order(self):
        server, address = self.start_server()
        worker = self.start_worker(address, "--delay", "1h")  # SIGHUP also ends this wait
        self.assertIn("joined", json.loads(worker.stdout.readline()))
        self.assertEqual(self.stop(worker, signal.SIGHUP), 75)
        self.assertEqual(self.stop(server, signal.SIGHUP), 0)

    def test_an_ignored_hangup_stops_no_program(self):
        server, address = self.start_server(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
        server.send_signal(signal.SIGHUP)
        self.assertEqual(self.start_worker(address).wait(WAIT_SECONDS), 0)
        self.assertEqual(self.stop(server), 0)

    def test_a_closed_terminal_ends_a_run_with_its_report(self):
        train = self.start([THINWIRE, "train", "--config", self.path("job.textproto"), "--straggler", "0:1s",
                            "--report", self.path("report.json")])
        for line in train.stderr:
            if line.startswith("servers "):
                break
        train.stderr.close()
        self.assertEqual(self.stop(train, signal.SIGHUP), 75)
        with open(self.path("report.json"), encoding="utf-8") as report:
            self.assertTrue(json.load(report)["interrupted"])


if __name__ == "__main__":
    unittest.main()
