"""Three hosts with a job, as an operator has them: the hosts 1 and 2 run its processes, and the trials run on host 3.

A host is a network namespace PREFIX-hN with the address 10.77.0.N (bench/namespaces.sh). Server and worker N are on host N % 2 + 1, with
their state in the folder hostN of the trial.
"""

import collections
import json
import os
import shutil
import signal
import subprocess
import urllib.request

from tests.program import WAIT_SECONDS, Failed, Program, wait_until

# PREFIX: of the namespaces. PROGRAMS: a folder with thinwire, server and worker. WORK: a temporary folder.
Setting = collections.namedtuple("Setting", "prefix programs work")

JOB = """
name: "operate"
servers: {servers}
silence_seconds: 4
consistency {{ {mode} workers: {workers} max_workers: 4 lease_seconds: {lease} start_timeout_seconds: 20 drain_seconds: 10 }}
optimization {{ optimizer: {optimizer} learning_rate: {rate} }}
recovery {{ durability: {durability} {recovery} }}
task {{ model: mlp dataset: fashion_mnist train_examples: 2000 test_examples: 200 batch_size: 20 epochs: {epochs} device: "cpu" }}
straggler: "0:20ms"
"""
DEFAULTS = {"servers": 2, "workers": 2, "mode": "mode: sync", "lease": 5, "optimizer": "sgd", "rate": 0.02, "durability": "log",
            "recovery": "checkpoint_seconds: 1", "epochs": 10000}  # 50 steps in an epoch, about a second


def check_words(text, words, source):
    for word in words:
        if word not in text:
            raise Failed(f"{source} (expected \"{word}\", got:\n{text.strip()[-3000:]})")


def host_of(number):
    return number % 2 + 1


class Site:
    """A context manager: at its end, no process of the site is left."""

    def __init__(self, setting, number):
        self.setting = setting
        self.folder = os.path.join(setting.work, str(number))
        self.programs = []
        self.started = {}  # the newest process of each name
        self.server_count = DEFAULTS["servers"]
        self.environment = {"THINWIRE_CREDENTIALS": self.path("certs/operator")}

    def __enter__(self):
        os.makedirs(self.folder)
        shutil.copytree(os.path.join(self.setting.work, "certs"), self.path("certs"))
        return self

    def __exit__(self, kind, error, trace):
        for program in self.programs:
            program.signal(signal.SIGCONT)
            program.signal(signal.SIGKILL)
            program.process.wait()
        if kind is not None:
            for program in self.started.values():
                print(f"--- {program.name}: exit code {program.process.returncode}\n{program.log()[-1500:]}"
                      f"{program.output()[-300:]}")

    def path(self, name):
        return os.path.join(self.folder, name)

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)
        return self.path(name)

    def job(self, name="job.textproto", **settings):
        """Writes a job file with SETTINGS in place of DEFAULTS."""
        values = {**DEFAULTS, **settings}
        self.server_count = values["servers"]
        return self.write(name, JOB.format(**values))

    def addresses(self):
        return ",".join(f"10.77.0.{host_of(n)}:{7000 + n // 2}" for n in range(self.server_count))

    # Commands of the operator.

    def command(self, *arguments, **variables):
        """Returns the exit code and the whole output of `thinwire ARGUMENTS`."""
        environment = {**os.environ, "THINWIRE_ADDRESSES": self.addresses(), **self.environment, **variables}
        end = subprocess.run([os.path.join(self.setting.programs, "thinwire"), *arguments], env=environment, cwd=self.folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                             timeout=WAIT_SECONDS, check=False)
        return end.returncode, end.stdout

    def thinwire(self, *arguments, code=0, words=(), **variables):
        """Runs a command, which must end with CODE and print WORDS. Returns its output."""
        found, text = self.command(*arguments, **variables)
        title = " ".join(("thinwire", *arguments))
        if found != code:
            raise Failed(f"{title}: wrong exit code (expected {code}, got {found}):\n{text[-3000:]}")
        check_words(text, words, title)
        return text

    # Processes.

    def start(self, name, host, *arguments):
        """Starts a program on a host."""
        program = Program(self.folder, name, ["ip", "netns", "exec", f"{self.setting.prefix}-h{host}", *arguments])
        self.programs.append(program)
        self.started[name] = program
        return program

    def process(self, kind, number, flags, name=None):
        values = {"--config": self.path("job.textproto"), f"--{kind}": str(number), "--addresses": self.addresses(),
                  "--credentials": self.path(f"certs/{kind}-{number}"), "--state_dir": self.path(f"host{host_of(number)}"),
                  "--admin": self.admin(kind, number)}
        values.update(flags)  # None: the flag is left out
        words = [word for flag, value in values.items() if value is not None for word in (flag, value)]
        return self.start(name or f"{kind}{number}", host_of(number), os.path.join(self.setting.programs, kind), *words)

    def admin(self, kind, number):
        return f"10.77.0.{host_of(number)}:{(9100 if kind == 'server' else 9200) + number // 2}"

    def server(self, number, flags=(), name=None, wait=True):
        """Starts a server, and waits until it listens."""
        flags = dict(flags)
        with open(self.path("job.textproto"), encoding="utf-8") as job:
            if "durability: none" in job.read():
                flags["--state_dir"] = None
        program = self.process("server", number, flags, name)
        if wait:
            program.address()
        return program

    def worker(self, number, flags=(), name=None):
        return self.process("worker", number, dict(flags), name)

    def train(self, **settings):
        """Starts a job of two servers and two workers, and waits until it trains."""
        self.job(**settings)
        self.servers()
        self.workers()
        self.steps(5)

    def servers(self):
        for number in range(self.server_count):
            self.server(number, wait=False)
        for number in range(self.server_count):
            self.started[f"server{number}"].address()

    def workers(self):
        for number in (0, 1):
            self.worker(number)

    def kill(self, name):
        self.started[name].signal(signal.SIGKILL)
        self.started[name].process.wait()

    def ends(self, name, code, *words):
        """Waits for the end of a process with exit code CODE, whose log and output have WORDS."""
        program = self.started[name]
        wait_until(lambda: program.process.poll() is not None, f"{name} does not end")
        text = program.log() + program.output()
        if program.process.returncode != code:
            raise Failed(f"{name}: wrong exit code (expected {code}, got {program.process.returncode}):\n{text[-3000:]}")
        check_words(text, words, name)

    def says(self, name, *words):
        """Waits until the log or the output of a running process has WORDS."""
        program = self.started[name]

        def said():
            text = program.log() + program.output()
            if all(word in text for word in words):
                return True
            if program.process.poll() is not None:
                raise Failed(f"{name} ended with {program.process.returncode} (expected {words}, got:\n{text[-3000:]})")
            return False

        wait_until(said, lambda: f"{name} does not say {words}:\n{(program.log() + program.output())[-3000:]}")

    def lives(self, *names):
        for name in names:
            if self.started[name].process.poll() is not None:
                raise Failed(f"{name} has ended with exit code {self.started[name].process.returncode} (expected that it runs)")

    # What the operator sees.

    def get(self, kind, number, path):
        """The page of a process."""
        with urllib.request.urlopen(f"http://{self.admin(kind, number)}{path}", timeout=WAIT_SECONDS) as reply:
            return reply.read().decode()

    def metric(self, kind, number, name):
        """The value of a metric with its labels except job_name and role; None if it is absent."""
        for line in self.get(kind, number, "/metrics").splitlines():
            if line.startswith(name):
                return float(line.split()[-1])
        return None

    def shows(self, *words):
        """Waits until `thinwire status` has WORDS."""
        seen = [""]

        def shown():
            seen[0] = self.command("status")[1]
            return all(word in seen[0] for word in words)

        wait_until(shown, lambda: f"thinwire status does not show {words}:\n{seen[0]}")

    def status(self):
        """The JSON of `thinwire status`, {} if no server answers."""
        code, text = self.command("status", "--json")
        return json.loads(text[text.index("{"):text.rindex("}") + 1]) if code == 0 else {}

    def state(self, state, *words):
        """Waits until `thinwire status` and, if the lead answers, its page name STATE, with WORDS in their reasons."""
        seen = {}

        def reached():
            statuses = {"thinwire status": self.status()}
            try:
                statuses["the lead's page"] = json.loads(self.get("server", 0, "/status.json"))
            except OSError:
                pass
            seen.update(statuses)
            return all(found.get("state") == state and all(word in text_of(found) for word in words)
                       for found in statuses.values())

        def text_of(status):
            return "\n".join([status.get("state_text", ""), *status.get("problems", [])])

        wait_until(reached, lambda: f"the state is not {state} {words}, but {[(k, text_of(s)) for k, s in seen.items()]}")

    def step(self):
        return int(self.status().get("summary", {}).get("step", 0))

    def steps(self, count):
        """Waits until the job has finished COUNT more steps."""
        first = self.step()
        wait_until(lambda: self.step() >= first + count, lambda: f"no {count} steps after step {first}: {self.command('status')}")
