"""Starts Python programs with `thinwire launch` and with torchrun, and ends their processes in every way."""

import glob
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

from tests.python import jobs

THINWIRE = os.path.abspath("cli/thinwire")
SETTINGS = {"optimizer": "momentum", "learning_rate": 0.05, "servers": 2, "silence_seconds": 1, "lease_seconds": 1,
            "start_timeout_seconds": 20}
PROLOGUE = f"""
import os, sys, time
sys.path.insert(0, {os.getcwd()!r})
from tests.python import worker
settings = {SETTINGS!r}
"""

# Starts the tasks of a step as srun does, with its variables: python3 -c SRUN COUNT COMMAND. srun ends with the highest exit code.
SRUN = """
import os, subprocess, sys
count, command = int(sys.argv[1]), sys.argv[2:]
step = {"SLURM_JOB_ID": "4711", "SLURM_STEP_ID": "0", "SLURM_STEP_NUM_TASKS": str(count), "SLURM_STEP_NUM_NODES": "1",
        "SLURM_STEP_NODELIST": "localhost"}
tasks = [subprocess.Popen(command, env={**step, **os.environ, "SLURM_PROCID": str(n), "SLURM_LOCALID": str(n)})
         for n in range(count)]
sys.exit(max(task.wait() for task in tasks))
"""


def environment_of(folder, **variables):
    """Returns the environment of a command whose processes have FOLDER in their environment."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("THINWIRE_", "SLURM_"))}
    return {**clean, "PYTHONPATH": jobs.PYTHONPATH, "THINWIRE_PYTHON": sys.executable, "TMPDIR": folder, "OMP_NUM_THREADS": "1",
            "PYTHONUNBUFFERED": "1", **variables}


def processes_of(folder, word=""):
    """Returns the command lines of the processes of FOLDER that contain WORD, by process number."""
    found = {}
    for path in glob.glob("/proc/[0-9]*"):
        try:
            with open(f"{path}/environ", encoding="utf-8", errors="replace") as file:
                environment = file.read()
            with open(f"{path}/cmdline", encoding="utf-8", errors="replace") as file:
                words = file.read().split("\0")
        except OSError:  # the process has ended, or is that of another user
            continue
        if f"TMPDIR={folder}\0" in environment and word in words:
            found[int(path.rpartition("/")[2])] = words
    return found


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return str(s.getsockname()[1])


def wait_until(condition, text):
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline, text
        time.sleep(0.02)


class LaunchTestCase(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def program(self, text):
        path = os.path.join(self.folder, "program.py")
        with open(path, "w", encoding="utf-8") as file:
            file.write(PROLOGUE + text)
        return path

    def start(self, *command, **variables):
        process = subprocess.Popen(command, env=environment_of(self.folder, **variables), stdout=subprocess.PIPE,
                                   stderr=subprocess.PIPE, text=True)
        self.addCleanup(process.kill)
        return process

    def end_of(self, process):
        """Returns the exit code, the output and the errors of a command, none of whose processes may remain."""
        output, errors = process.communicate(timeout=100)
        wait_until(lambda: not processes_of(self.folder), "processes remain")
        return process.returncode, output, errors

    def start_training(self, start, step_seconds=0.01, **variables):
        """Starts the endless program, and returns the command when both workers train."""
        process = start(self.program(f"worker.train(settings, 10**6, step_seconds={step_seconds})"), **variables)
        training = 0
        while training < 2:
            line = process.stdout.readline()
            assert line, "the command has ended:\n" + self.end_of(process)[2]
            training += line.count("training")  # torchrun may write two lines as one
        return process

    def servers(self):
        """Returns the process numbers of the servers by number."""
        return {words[words.index("--server") + 1]: pid for pid, words in processes_of(self.folder, "--server").items()}

    def launch(self, *arguments, **variables):
        return self.start(THINWIRE, "launch", *arguments, **variables)

    def launch_two(self, *arguments):
        return self.launch("--workers", "2", "--servers", "2", *arguments)

    def srun_launch(self, count, *arguments, **variables):
        return self.start(sys.executable, "-c", SRUN, str(count), THINWIRE, "launch", *arguments, **variables)

    def torchrun(self, *arguments, rendezvous=("--standalone",), **variables):
        # PyTorch 1.13 with Python 3.11 accepts no other value of --redirects and --tee than 1 and 2, not even the default.
        return self.start(sys.executable, "-m", "torch.distributed.run", *rendezvous, "--nproc_per_node", "2",
                          "--redirects", "1", "--tee", "1", *arguments, **variables)


class LaunchTest(LaunchTestCase):
    def test_flags_after_the_program_belong_to_the_program(self):
        program = self.program("print(sys.argv[1:], [os.environ.get('THINWIRE_' + n) for n in ('WORKERS', 'MODE', 'PUSH')])")
        own = ["--workers", "7", "--hosts", "h", "--push", "fp32", "--", "--mode"]
        code, output, errors = self.end_of(self.launch("--workers", "2", "--mode", "async", program, *own))
        self.assertEqual(code, 0, errors)
        for number in range(2):
            self.assertIn(f"worker {number}: {own} ['2', 'async', None]\n", output)

    def test_each_task_of_slurm_becomes_a_worker(self):
        names = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "THINWIRE_SERVERS", "THINWIRE_MODE")
        program = self.program(f"words = [*[os.environ[name] for name in {names}], *sys.argv[1:]]\n"
                               "os.write(1, (' '.join(words) + '\\n').encode())  # at once, since the tasks share the pipe\n")
        for hosts, first in (("node[07-09,11],gpu1", "node07"), ("a-1,b[1-2]", "a-1"), ("rack[1-2]n[03-04]", "rack1n03")):
            process = self.srun_launch(2, "--servers", "3", "--mode", "async", program, "--workers", SLURM_STEP_NODELIST=hosts)
            code, output, errors = self.end_of(process)
            self.assertEqual(code, 0, errors)
            self.assertEqual(sorted(output.splitlines()),
                             [f"{number} 2 {number} {first} 22977 3 async --workers" for number in range(2)])
        code, _, errors = self.end_of(self.srun_launch(2, "--workers", "2", program))
        self.assertEqual(code, 64)
        self.assertIn("--workers: not valid under srun with several tasks (expected none, since each task is a worker, got 2)", errors)
        # A step of one task starts all processes of the job, as elsewhere.
        code, output, errors = self.end_of(self.srun_launch(1, "--workers", "2", self.program("print(worker.WORKER)")))
        self.assertEqual((code, sorted(output.splitlines())), (0, ["worker 0: 0", "worker 1: 1"]), errors)

    def test_the_exit_code_is_that_of_the_worker_that_fails_first(self):
        program = self.program("worker.train(settings, steps=3)\nsys.exit(7 if worker.WORKER == 1 else 0)")
        code, output, errors = self.end_of(self.launch_two(program))
        self.assertEqual((code, errors), (7, "launch: worker 1 failed with exit code 7\n"), output)

    def test_no_port_is_promised_before_its_server_listens(self):
        program = self.program("import socket\n"
                               "ports = [int(a.split(':')[1]) for a in os.environ.get('THINWIRE_ADDRESSES', '').split(',') if a]\n"
                               "taken = [socket.create_server(('127.0.0.1', port)) for port in ports if worker.WORKER == 0]\n"
                               "worker.train(settings, steps=3)")
        code, output, errors = self.end_of(self.launch_two(program))
        self.assertEqual((code, errors), (0, ""), output)

    def test_nothing_remains_of_a_killed_launch(self):
        process = self.start_training(self.launch_two)
        self.assertEqual(set(self.servers()), {"0", "1"})
        process.kill()
        self.assertEqual(self.end_of(process)[0], -signal.SIGKILL)

    def test_stopped_workers_push_their_residuals_before_the_servers_end(self):
        process = self.start_training(lambda program: self.launch_two("--push", "topk", "--density", "0.01", program), step_seconds=0.5)
        process.send_signal(signal.SIGTERM)  # while both compute a step
        code, output, errors = self.end_of(process)
        self.assertEqual(code, 128 + signal.SIGTERM, errors)
        for number in range(2):
            self.assertRegex(output, rf"worker {number}: thinwire: SIGTERM: worker {number} leaves before step \d+\n")
        self.assertNotIn("residual", output)
        self.assertNotIn("Error", output)

    def test_wrong_command_lines_have_one_clear_error(self):
        program = self.program("")
        for arguments, variables, text in (
            ((), {}, r"--hosts: missing \(expected a file with machines, or a Python program such as train.py, got neither"),
            (("nothing.py",), {}, r"nothing.py: no such file \(expected a Python program\)"),
            (("--workers", "0", program), {}, r"--workers: out of range \(expected at least 1, got 0\)"),
            (("--workers", "two", program), {}, "--workers: invalid int value: 'two'"),
            (("--work", "2", program), {}, "unrecognized arguments: --work"),
            (("--ordered_fold", program), {}, r"--ordered_fold: missing value \(expected a value such as true, got the"),
            ((program,), {"THINWIRE_ADDRESSES": "127.0.0.1:7000"}, "THINWIRE_ADDRESSES: only valid with servers that run"),
            ((program,), {"THINWIRE_SITE": "1"}, "THINWIRE_SITE: only valid with an aggregator that runs already"),
        ):
            with self.subTest(arguments=arguments):
                code, output, errors = self.end_of(self.launch(*arguments, **variables))
                self.assertEqual((code, output, errors.count("\n")), (64, "", 1), errors)
                self.assertRegex(errors, text)


# Runs its command on this machine, as ssh does on another one (cli/hosts/ssh_hosts_test.cc).
SSH = """#!/bin/sh
while :; do case $1 in -o) shift 2 ;; -*) shift ;; *) break ;; esac; done
shift
cd / && exec sh -c "$*"
"""
HOSTS = "127.0.0.1 servers=1 workers=1\n127.0.0.2 servers=1 workers=1 data_dir=/data device=cuda:3\n"
ARRAYS = """
import os, sys, numpy, thinwire
def train(steps, **settings):
    optimizer = thinwire.ArrayOptimizer({"w": numpy.ones(4)}, "sgd", lr=0.1, silence_seconds=1, **settings)
    print("training", flush=True)
    while optimizer.step_number < steps:
        optimizer.step({"w": optimizer.parameters["w"]})
    optimizer.close()
    print(f"trained to {optimizer.parameters['w'][0]:.4f}")
thinwire.init()
"""


class HostsTest(LaunchTestCase):
    """`thinwire launch --hosts` with a Python program; tests/processes/launch_test.cc has a real sshd."""

    def setUp(self):
        super().setUp()
        for name, text in (("ssh", SSH), ("hosts.txt", HOSTS), ("job.textproto", "name: 'numbers' silence_seconds: 2")):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        os.chmod(self.path("ssh"), 0o700)
        os.makedirs(self.path("bin"))
        os.symlink(jobs.SERVER, self.path("bin/server"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def arrays(self, text):
        with open(self.path("arrays.py"), "w", encoding="utf-8") as file:
            file.write(ARRAYS + text)

    def launch_hosts(self, *arguments, flags=(), work_dir=None, **variables):
        return self.launch("--hosts", self.path("hosts.txt"), "--insecure", "--remote_bin_dir", self.path("bin"), "--ssh",
                           self.path("ssh"), "--remote_dir", self.path("remote"), "--work_dir", work_dir or self.folder, *flags, "arrays.py",
                           *arguments, **variables)

    def end_in_order(self, process):
        ended = self.end_of(process)
        self.assertEqual(os.listdir(self.path("remote")), [], "the machines keep files of the run")
        return ended

    def test_a_program_trains_on_two_machines_with_job_file_flags_and_its_own_settings(self):
        self.arrays("names = ('WORKERS', 'DATA_DIR', 'DEVICE')\n"
                    "print(sys.argv[1:], os.getcwd(), [os.environ.get('THINWIRE_' + n) for n in names], thinwire.rank(),\n"
                    "      thinwire.world_size())\n"
                    "train(2)\n")
        own = ["--hosts", "h", "--mode", "sync", "a b'c"]
        code, output, errors = self.end_in_order(
            self.launch_hosts(*own, flags=("--config", self.path("job.textproto"), "--silence_seconds", "3", "--pull", "bf16")))
        self.assertEqual(code, 0, errors + output)
        self.assertIn(f"worker 0: {own} {self.folder} ['2', None, None] 0 2\n", output)
        self.assertIn(f"worker 1: {own} {self.folder} ['2', '/data', 'cuda:3'] 1 2\n", output)
        for number in range(2):
            self.assertIn(f"worker {number}: trained to 0.8086\n", output)  # 0.81 through the flag --pull bf16
        self.assertRegex(errors, r"127.0.0.2: server 1, worker 1\nservers 127.0.0.1:\d+,127.0.0.2:\d+\n")

    def test_the_exit_code_is_that_of_the_worker_that_fails_first(self):
        self.arrays("train(10**9) if thinwire.rank() == 0 else sys.exit('mistake')")
        code, output, errors = self.end_in_order(self.launch_hosts())
        self.assertEqual(code, 1, errors)
        self.assertIn("worker 1: mistake\n", output)
        self.assertIn("error: worker 1 ended with exit code 1\n", errors)

    def test_a_server_that_does_not_start_is_named(self):
        self.arrays("train(10**9, durability='log')")
        code, _, errors = self.end_in_order(self.launch_hosts())
        self.assertEqual(code, 78, errors)
        self.assertRegex(errors, r"error: server \d ended with exit code 78: .*--state_dir: required|--state_dir")

    def test_signals_leave_no_process(self):
        for number, expected in ((signal.SIGINT, 130), (signal.SIGTERM, 75), (signal.SIGKILL, -signal.SIGKILL)):
            with self.subTest(number=number):
                self.arrays("train(10**9)")
                process = self.launch_hosts()
                while "training" not in process.stdout.readline():
                    self.assertIsNone(process.poll())
                process.send_signal(number)
                self.assertEqual(self.end_of(process)[0], expected)

    def test_mistakes_are_named_before_a_process_starts(self):
        self.arrays("")
        os.makedirs(self.path("empty"))
        place = re.escape(self.path("hosts.txt") + ":2: 127.0.0.2: ")
        for flags, variables, code, text in (
            ((), {"work_dir": self.path("none")}, 69, place + "no folder .*/none .expected the folder in which the program runs"),
            ((), {"work_dir": self.path("empty")}, 69, place + "no program arrays.py .expected it in .*/empty"),
            ((), {"THINWIRE_PYTHON": "python0"}, 69, place + "no Python interpreter python0 .expected python3, or its path in"),
            ((), {"PYTHONPATH": "/none"}, 69, place + "no Python package thinwire .expected its wheel, or --copy.: ModuleNotFound"),
            (("--output", "model"), {}, 64, "--output: not valid with a Python program .expected none, got arrays.py"),
            (("--epochs", "3"), {}, 78, "--epochs: describes the task of the C.. worker"),
            (("--workers", "3"), {}, 78, "hosts.txt: workers: wrong sum .expected at least 3"),
            (("--workers", "1"), {}, 78, "hosts.txt: wrong sums .expected at least one server, and the 1 workers of the job, got 2"),
            (("--mode", "fast"), {}, 78, "--mode: wrong value"),
        ):
            with self.subTest(flags=flags, variables=variables):
                ended, output, errors = self.end_of(self.launch_hosts(flags=flags, **variables))
                self.assertEqual((ended, output), (code, ""), errors)
                self.assertRegex(errors, r"error: (.*\n)?.*" + text)

    def test_another_name_than_that_of_the_certificates_is_refused(self):
        subprocess.run([THINWIRE, "certs", "init", "ca"], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        self.arrays("train(2, name='other')")
        process = self.launch("--hosts", self.path("hosts.txt"), "--credentials_from", self.path("ca"), "--remote_bin_dir",
                              self.path("bin"), "--ssh", self.path("ssh"), "--remote_dir", self.path("remote"),
                              self.path("arrays.py"))
        code, _, errors = self.end_in_order(process)
        self.assertEqual(code, 78, errors)
        self.assertIn("name: the certificates are of another job (expected train, got other from the program; --name other", errors)


class TorchrunTest(LaunchTestCase):
    def test_torchrun_and_the_tasks_of_slurm_train_as_launch_does(self):
        program = self.program("with open(f'{sys.argv[1]}-{worker.WORKER}', 'w') as sys.stdout:\n"
                               "    worker.train(dict(settings, ordered_fold=True))\n"
                               "sys.stdout = sys.__stdout__")
        results = {}
        for name, process in (("launch", self.launch_two(program, self.folder + "/launch")),
                              ("srun", self.srun_launch(2, "--servers", "2", program, self.folder + "/srun",
                                                        MASTER_PORT=free_port())),
                              ("torchrun", self.torchrun(program, self.folder + "/torchrun"))):
            code, _, errors = self.end_of(process)
            self.assertEqual(code, 0, errors)
            for number in range(2):
                with open(f"{self.folder}/{name}-{number}", encoding="utf-8") as file:
                    results[name, number] = json.load(file)
        for number in range(2):
            for value in ("step", "parameters"):
                for name in ("srun", "torchrun"):
                    self.assertEqual(results[name, number][value], results["launch", number][value])

    def expect_lost_server(self, errors, server):
        # The two workers write at the same time, so their lines may be mixed.
        self.assertIn("ServerLostError", errors)
        self.assertRegex(errors, rf"server {server} \(127.0.0.1:\d+\): silent for")

    def test_a_killed_server_is_named_and_all_processes_end(self):
        process = self.start_training(self.torchrun)
        os.kill(self.servers()["1"], signal.SIGKILL)
        code, _, errors = self.end_of(process)
        self.assertNotEqual(code, 0)
        self.assertRegex(errors, r"thinwire: server 1 was killed by signal 9; its log ends with:\n  \S")
        self.expect_lost_server(errors, "1")

    def test_servers_end_with_a_killed_worker_0(self):
        process = self.start_training(self.torchrun)
        words, = processes_of(self.folder, "thinwire.server_group").values()
        os.kill(int(words[words.index("--parent") + 1]), signal.SIGKILL)
        self.assertNotEqual(self.end_of(process)[0], 0)

    def test_an_exception_of_worker_0_ends_the_job(self):
        program = self.program("def fail(*arguments):\n"
                               "    raise ValueError('mistake')\n"
                               "if worker.WORKER == 0:\n"
                               "    worker.loss_of = fail\n"
                               "worker.train(dict(settings, mode='async'), 10**6, step_seconds=0.01)")
        code, _, errors = self.end_of(self.torchrun(program))
        self.assertNotEqual(code, 0)
        self.assertIn("ValueError: mistake", errors)

    def test_certificates(self):
        for command in ("init ca", "issue ca --role server --job train --server 0 --out certs/server-0",
                        "issue ca --role server --job train --server 1 --out certs/server-1",
                        "issue ca --role worker --job train --out certs/worker"):
            subprocess.run([THINWIRE, "certs", *command.split()], cwd=self.folder, check=True, stdout=subprocess.DEVNULL)
        code, _, errors = self.end_of(self.torchrun(self.program("worker.train(settings, 3)"),
                                                    THINWIRE_CREDENTIALS=f"{self.folder}/certs/worker"))
        self.assertEqual(code, 0, errors)

    def alone(self, program, **variables):
        """Returns the errors of PROGRAM, the only worker of a machine, which must fail."""
        variables = {"RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": free_port(), **variables}
        code, _, errors = self.end_of(self.start(sys.executable, program, **variables))
        self.assertNotEqual(code, 0)
        return errors

    def test_servers_for_other_machines_need_credentials(self):
        errors = self.alone(self.program("worker.train(settings)"), WORLD_SIZE="2", LOCAL_WORLD_SIZE="1",
                            MASTER_ADDR="192.0.2.1")
        self.assertIn("thinwire.Error: servers: reachable from other machines without credentials (expected "
                      "THINWIRE_CREDENTIALS, or THINWIRE_INSECURE=1 in a network that nobody else reaches, got neither for "
                      "192.0.2.1)\n", errors)

    def test_a_server_that_does_not_start_is_named(self):
        errors = self.alone(self.program("worker.train(settings, state_dir='/nowhere')"))
        self.assertRegex(errors, r"thinwire.Error: servers: server 1 failed with exit code 78: .*--state_dir: only valid with")

    def test_a_wrong_port_of_the_store_is_named(self):
        errors = self.alone(self.program("worker.train(settings)"), MASTER_PORT="many")
        self.assertRegex(errors, "thinwire.Error: servers: no store for their addresses .*MASTER_PORT=many")


class TorchrunNightlyTest(LaunchTestCase):
    def test_worker_0_waits_for_workers_that_train_longer(self):
        program = self.program("worker.train(dict(settings, mode='async'), steps=10 + 100 * worker.WORKER, step_seconds=0.01)")
        code, _, errors = self.end_of(self.torchrun(program))
        self.assertEqual(code, 0, errors)

    def test_a_program_may_use_torch_distributed_and_two_optimizers(self):
        for first in (True, False):
            program = self.program(
                "import torch.distributed as dist\n"
                f"if {first}: dist.init_process_group('gloo')\n"
                "worker.train(settings, steps=2)\n"
                "worker.train(settings, steps=2)\n"
                f"if not {first}: dist.init_process_group('gloo')\n"
                "ranks = [None, None]\n"
                "dist.all_gather_object(ranks, worker.WORKER)\n"
                "assert ranks == [0, 1], ranks\n")
            with self.subTest(first=first):
                code, _, errors = self.end_of(self.torchrun(program))
                self.assertEqual(code, 0, errors)

    def test_torchrun_starts_a_job_again(self):
        program = self.program("first = os.environ['TORCHELASTIC_RESTART_COUNT'] == '0'\n"
                               "worker.train(settings, steps=3)\n"
                               "sys.exit(5 if first and worker.WORKER == 1 else 0)")
        for rendezvous in (("--standalone",), ("--master_addr", "127.0.0.1", "--master_port", free_port())):
            with self.subTest(rendezvous=rendezvous):
                code, _, errors = self.end_of(self.torchrun("--max_restarts", "1", program, rendezvous=rendezvous))
                self.assertEqual(code, 0, errors)

    def test_running_servers_are_used(self):
        with jobs.Servers(**SETTINGS, workers=2) as servers:
            process = self.start_training(self.torchrun, THINWIRE_ADDRESSES=servers.addresses)
            self.assertEqual(self.servers(), {})
            process.terminate()
            self.assertNotEqual(self.end_of(process)[0], 0)

    def test_servers_end_with_the_process_that_watches_them(self):
        process = self.start_training(self.torchrun)
        pid, = processes_of(self.folder, "thinwire.server_group")
        os.kill(pid, signal.SIGKILL)
        code, _, errors = self.end_of(process)
        self.assertNotEqual(code, 0)
        self.expect_lost_server(errors, r"\d")

    def test_ctrl_c_and_sigterm_end_all_processes(self):
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                process = self.start_training(self.torchrun)
                process.send_signal(number)
                self.assertNotEqual(self.end_of(process)[0], 0)


if __name__ == "__main__":
    unittest.main()
