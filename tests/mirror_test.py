"""Mirrors the checkpoints of real jobs in an S3 bucket of moto, loses the state directory, and continues from the bucket.

    mirror_test THINWIRE
"""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import boto3
import werkzeug.serving
from moto.server import DomainDispatcherApplication, create_backend_app

THINWIRE = sys.argv.pop()
WAIT_SECONDS = 90  # longer than any wait takes on a busy machine

# Each worker has 1000 examples in batches of 10: 100 steps per epoch. All checkpoints stay, so that the one in the bucket can be
# compared with the local one.
JOB = """
name: "mirrored"
servers: 2
consistency { mode: sync ordered_fold: true workers: 2 }
optimization { optimizer: momentum learning_rate: 0.01 }
recovery { durability: DURABILITY checkpoint_seconds: 0.3 keep_checkpoints: 1000 }
task { model: softmax train_examples: 2000 test_examples: 100 batch_size: 10 epochs: 4 }
straggler: "0:20ms"
"""


class MirrorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        application = DomainDispatcherApplication(create_backend_app)
        cls.server = werkzeug.serving.make_server("127.0.0.1", 0, application, threaded=True)
        threading.Thread(target=cls.server.serve_forever, daemon=True).start()
        cls.endpoint = f"http://127.0.0.1:{cls.server.server_port}"
        cls.keys = {"AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret"}
        client = boto3.client(
            "s3", endpoint_url=cls.endpoint, region_name="us-east-1", aws_access_key_id="key", aws_secret_access_key="secret"
        )
        client.create_bucket(Bucket="models")

    def check_credentials(self, after):
        """The S3 server accepts all credentials for AFTER requests, and then those of its users only. It has none."""
        text = {"Content-Type": "text/plain"}
        request = urllib.request.Request(self.endpoint + "/moto-api/reset-auth", after.encode(), text, method="POST")
        with urllib.request.urlopen(request, timeout=WAIT_SECONDS) as reply:
            self.assertEqual(reply.status, 200)

    @classmethod
    def tearDownClass(cls):
        cls.server.shutdown()

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        self.addCleanup(self.folder.cleanup)
        self.state = self.path("state")
        self.url = f"s3://models/{self.id()}"

    def path(self, name):
        return os.path.join(self.folder.name, name)

    def environment(self, **variables):
        return {**os.environ, **self.keys, "RCLONE_S3_ENDPOINT": self.endpoint, "RCLONE_CONFIG": "/dev/null", **variables}

    def run_command(self, *arguments, **variables):
        """Returns the exit code, the output and the errors of a command."""
        command = [THINWIRE, *arguments]
        end = subprocess.run(
            command, env=self.environment(**variables), capture_output=True, text=True, timeout=WAIT_SECONDS, check=False
        )
        return end.returncode, end.stdout, end.stderr

    def run_well(self, *arguments):
        """Returns the output of a command that succeeds."""
        code, output, errors = self.run_command(*arguments)
        self.assertEqual(code, 0, errors)
        return output

    def write_job(self, durability):
        with open(self.path("job.textproto"), "w", encoding="utf-8") as job:
            job.write(JOB.replace("DURABILITY", durability))

    def train_command(self, state, *flags):
        job, report = self.path("job.textproto"), self.path("report.json")
        return ["train", "--config", job, "--report", report, "--state_dir", state, *flags]

    def start(self, *arguments):
        """Starts a command, whose output goes to the file `output`."""
        with open(self.path("output"), "w", encoding="utf-8") as output:
            process = subprocess.Popen([THINWIRE, *arguments], env=self.environment(), stdout=output)
        self.addCleanup(process.wait, WAIT_SECONDS)
        self.addCleanup(process.kill)
        return process

    def steps_of(self, mirror):
        """Returns the steps that the running MIRROR has printed."""
        self.assertIsNone(mirror.poll())
        with open(self.path("output"), encoding="utf-8") as output:
            return set(re.findall(r": mirrored 2 servers; a fetch continues at step (\d+)\n", output.read()))

    def train(self, state, *flags):
        """Trains to the end and returns the report."""
        self.run_well(*self.train_command(state, *flags))
        with open(self.path("report.json"), encoding="utf-8") as report:
            return json.load(report)

    def wait_for(self, done):
        deadline = time.monotonic() + WAIT_SECONDS
        while not (result := done()):
            self.assertLess(time.monotonic(), deadline)
            time.sleep(0.05)
        return result

    def mirror_from_step(self, least, train):
        """Mirrors the running job TRAIN until the bucket has the steps from LEAST on. Returns the smallest step in the bucket."""

        def mirror():
            self.assertIsNone(train.poll())
            code, output, _ = self.run_command("checkpoint", "mirror", self.url, "--state_dir", self.state)
            found = re.search(r"mirrored 2 servers; a fetch continues at steps? (\d+)", output) if code == 0 else None
            return found is not None and int(found[1]) >= least and int(found[1])

        return self.wait_for(mirror)

    def kill_all(self, train):
        """Kills `thinwire train` with all servers and workers, as a machine that loses its power does."""
        with open(f"/proc/{train.pid}/task/{train.pid}/children", encoding="utf-8") as children:
            processes = [train.pid, *map(int, children.read().split())]
        self.assertEqual(len(processes), 5)
        train.kill()
        train.wait(WAIT_SECONDS)
        self.wait_for(lambda: not any(os.path.exists(f"/proc/{process}") for process in processes))

    def export(self, name, *flags):
        """Returns the bytes of the parameters in the state directory."""
        self.run_well("checkpoint", "export", self.state, "--out", self.path(name), *flags)
        with open(self.path(name), "rb") as model:
            return model.read()

    def test_a_lost_job_continues_from_the_bucket_with_the_same_bits(self):
        self.write_job("checkpoint")
        undisturbed = self.train(self.path("undisturbed"), "--straggler", "0:0ms")
        self.assertEqual(undisturbed["steps"], 400)

        train = self.start(*self.train_command(self.state))
        step = self.mirror_from_step(1, train)
        self.kill_all(train)
        saved = self.export("saved.safetensors", "--step", str(step))
        shutil.rmtree(self.state)

        fetched = self.run_well("checkpoint", "fetch", self.url, "--state_dir", self.state)
        self.assertEqual(fetched, f"{self.state}: fetched 2 servers at step {step}\n")
        self.assertEqual(self.export("fetched.safetensors"), saved)
        self.run_well("checkpoint", "verify", self.state)

        resumed = self.train(self.state, "--resume", "--straggler", "0:0ms")
        self.assertEqual(resumed["resumed_step"], step)
        self.assertEqual(resumed["steps"], 400)
        self.assertEqual(resumed["final_parameters_crc32c"], undisturbed["final_parameters_crc32c"])

        # The resumed run goes on in the same bucket.
        mirrored = self.run_well("checkpoint", "mirror", self.url, "--state_dir", self.state)
        self.assertEqual(mirrored, f"{self.url}: mirrored 2 servers; a fetch continues at step 400\n")

    def test_servers_with_an_event_log_continue_from_their_checkpoints(self):
        self.write_job("log")
        train = self.start(*self.train_command(self.state))
        step = self.mirror_from_step(1, train)
        self.kill_all(train)
        shutil.rmtree(self.state)
        fetched = self.run_well("checkpoint", "fetch", self.url, "--state_dir", self.state)
        self.assertIn(": fetched 2 servers at step", fetched)
        self.assertIn(", without the event log\n", fetched)
        resumed = self.train(self.state, "--resume", "--straggler", "0:0ms")
        self.assertEqual(resumed["resumed_step"], step)
        self.assertEqual(resumed["steps"], 400)

    def test_a_mirror_follows_a_job_until_a_signal(self):
        self.write_job("checkpoint")
        os.mkdir(self.state)
        train = self.start(*self.train_command(self.state))
        mirror = self.start("checkpoint", "mirror", self.url, "--state_dir", self.state, "--every", "1")
        self.wait_for(lambda: len(self.steps_of(mirror)) >= 2)
        self.assertIsNone(train.poll())
        mirror.send_signal(signal.SIGTERM)
        self.assertEqual(mirror.wait(WAIT_SECONDS), 75)
        self.assertFalse(os.path.exists(self.path("state/mirror.tmp")))
        self.kill_all(train)
        self.run_well("checkpoint", "fetch", self.url, "--state_dir", self.path("fetched"))

    def test_errors_name_the_cause(self):
        source = ["--state_dir", self.state]
        self.write_job("checkpoint")
        self.train(self.state, "--epochs", "1")
        no_bucket = self.run_command("checkpoint", "mirror", "s3://none/run", *source)
        self.assertEqual(no_bucket[0], 78)
        self.assertRegex(no_bucket[2], r"^s3://none/run: rclone: .*NoSuchBucket: [^\n]*\n$")
        no_keys = self.run_command(
            "checkpoint", "mirror", self.url, *source, AWS_SECRET_ACCESS_KEY="", AWS_EC2_METADATA_DISABLED="true"
        )
        self.assertEqual(no_keys[0], 78, no_keys)
        self.assertRegex(no_keys[2], r"^s3://models/[^\n]*: rclone: .*NoCredentialProviders: [^\n]*\n$")
        self.check_credentials("0")
        self.addCleanup(self.check_credentials, "inf")
        wrong_keys = self.run_command("checkpoint", "mirror", self.url, *source)
        self.assertEqual(wrong_keys[0], 78, wrong_keys)
        self.assertRegex(wrong_keys[2], r"^s3://models/[^\n]*: rclone: [^\n]*InvalidAccessKeyId: [^\n]*\n$")
        self.check_credentials("inf")
        no_server = self.run_command("checkpoint", "mirror", self.url, *source, RCLONE_S3_ENDPOINT="http://127.0.0.1:1")
        self.assertEqual(no_server[0], 69)
        self.assertRegex(no_server[2], r"^s3://models/[^\n]*connection refused\)\n$")
        self.assertEqual(self.run_command("checkpoint", "fetch", "s3://none/run", "--state_dir", self.path("a"))[0], 78)
        nothing = self.run_command("checkpoint", "fetch", self.url, "--state_dir", self.path("a"))
        self.assertEqual(nothing, (78, "", f"{self.url}: no state directory (expected server-0)\n"))
        # No program of this machine is called rclone without a PATH.
        no_program = self.run_command("checkpoint", "mirror", self.url, *source, PATH=self.folder.name)
        self.assertEqual(no_program[0], 78)
        self.assertIn(": the program rclone is missing", no_program[2])
        self.run_well("checkpoint", "mirror", self.url, *source)
        taken = self.run_command("checkpoint", "fetch", self.url, *source)
        self.assertEqual(taken, (78, "", f"{self.state}: has state already (expected a folder without job.textproto)\n"))


if __name__ == "__main__":
    unittest.main()
