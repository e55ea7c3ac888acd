"""A process of a test, with its output and its log in files. It is killed when the test ends."""

import ctypes
import os
import signal
import subprocess
import time

WAIT_SECONDS = 90  # longer than any wait takes on a busy machine


class Failed(Exception):
    pass


def die_with_parent():
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def wait_until(done, what, seconds=WAIT_SECONDS):
    """Polls until done() is true, and returns its value. WHAT names the condition in the error."""
    end = time.monotonic() + seconds
    while not (result := done()):
        if time.monotonic() > end:
            raise Failed(f"{what() if callable(what) else what}, within {seconds} s")
        time.sleep(0.05)
    return result


class Program:
    """A program that is started again under the same name adds to the files; output() and log() return its own part."""

    def __init__(self, folder, name, arguments, commands=False):
        self.name = name
        self.killed = False  # by a fault
        self.output_file = os.path.join(folder, f"{name}.out")
        self.log_file = os.path.join(folder, f"{name}.log")
        with open(self.output_file, "a", encoding="utf-8") as output, open(self.log_file, "a", encoding="utf-8") as log:
            self.output_start, self.log_start = output.tell(), log.tell()
            self.process = subprocess.Popen(
                arguments, stdout=output, stderr=log, stdin=subprocess.PIPE if commands else subprocess.DEVNULL,
                preexec_fn=die_with_parent)

    def output(self):
        with open(self.output_file, encoding="utf-8", errors="replace") as file:
            file.seek(self.output_start)
            return file.read()

    def log(self):
        with open(self.log_file, encoding="utf-8", errors="replace") as file:
            file.seek(self.log_start)
            return file.read()

    def address(self):
        """Waits until the program listens, and returns its host:port."""

        def listening():
            if self.process.poll() is not None:
                raise Failed(f"{self.name} ended before it listened: {self.log()[-2000:]}")
            return [line.split()[1] for line in self.output().splitlines() if line.startswith("listening ")]

        return wait_until(listening, f"{self.name} does not listen")[0]

    def command(self, text):
        self.process.stdin.write(f"{text}\n".encode())
        self.process.stdin.flush()

    def signal(self, number):
        if self.process.poll() is None:
            self.process.send_signal(number)
