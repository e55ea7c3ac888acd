"""Reads the records of a real run: the event files with TensorBoard, and the trace.

    records_test THINWIRE
"""

import collections
import json
import os
import subprocess
import sys
import tempfile
import unittest

from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

THINWIRE = sys.argv.pop()
WORKERS = 2
SERVERS = 2
EPOCHS = 3
FLAGS = f"""
    --workers {WORKERS} --servers {SERVERS} --epochs {EPOCHS} --model mlp --dataset fashion_mnist --train_examples 12000
    --test_examples 200 --batch_size 50 --push fp8_e5m2 --durability log --schedule cosine --learning_rate 0.05 --device cpu
    --shard_size 20000
""".split()


class RecordsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory(dir=os.environ.get("TEST_TMPDIR"))
        cls.addClassCleanup(cls.folder.cleanup)
        path = lambda name: os.path.join(cls.folder.name, name)
        command = [THINWIRE, "train", *FLAGS, "--report", path("report.json"), "--tensorboard", path("board"),
                   "--trace", path("trace.json")]
        cls.run_ = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        assert cls.run_.returncode == 0, cls.run_.stderr
        with open(path("report.json"), encoding="utf-8") as file:
            cls.report = json.load(file)
        with open(path("trace.json"), encoding="utf-8") as file:
            cls.trace = json.load(file)
        cls.board = EventAccumulator(path("board"), size_guidance={"scalars": 0, "histograms": 0})
        cls.board.Reload()

    def last(self, tag):
        return self.board.Scalars(tag)[-1]

    def test_tensorboard_reads_every_chart(self):
        tags = {"train/loss", "train/learning_rate", "train/examples_per_second", "train/step_seconds", "test/accuracy",
                "test/loss", "bytes/push_raw", "bytes/push_encoded", "bytes/pull_raw", "bytes/pull_encoded"}
        self.assertEqual(set(self.board.Tags()["scalars"]), tags)
        self.assertEqual(self.board.Tags()["histograms"], ["servers/staleness"])

    def test_the_last_figures_are_those_of_the_report(self):
        self.assertEqual(self.last("train/loss").step, self.report["steps"])
        self.assertAlmostEqual(self.last("train/loss").value, self.report["final_train_loss"], places=5)
        self.assertEqual(len(self.board.Scalars("test/accuracy")), EPOCHS)
        self.assertAlmostEqual(self.last("test/accuracy").value, self.report["final_test_accuracy"], places=5)
        self.assertAlmostEqual(self.last("test/loss").value, self.report["final_test_loss"], places=5)
        for name in ("push_raw", "push_encoded", "pull_raw", "pull_encoded"):
            key = name.replace("_", "_bytes_")
            self.assertAlmostEqual(self.last(f"bytes/{name}").value / self.report[key], 1, places=5)
        self.assertLess(self.last("train/learning_rate").value, 0.05)
        histogram = self.board.Histograms("servers/staleness")[-1].histogram_value
        self.assertEqual(histogram.num, self.report["accepted_pushes"])

    def spans(self, name):
        return [event for event in self.trace["traceEvents"] if event["ph"] == "X" and event["name"] == name]

    def processes(self):
        """Returns {name of a process: its number}."""
        return {event["args"]["name"]: event["pid"] for event in self.trace["traceEvents"]
                if event["name"] == "process_name"}

    def test_the_trace_follows_the_trace_event_format(self):
        kinds = collections.Counter()
        lanes = set()
        for event in self.trace["traceEvents"]:
            kinds[event["ph"]] += 1
            self.assertIsInstance(event["name"], str)
            self.assertIsInstance(event["pid"], int)
            self.assertIsInstance(event["tid"], int)
            self.assertIsInstance(event["args"], dict)
            if event["ph"] == "M":
                self.assertIn(event["name"], ("process_name", "thread_name"))
                lanes.add((event["pid"], event["tid"]))
                continue
            self.assertIsInstance(event["ts"], int)
            self.assertIsInstance(event["dur"], int)
            self.assertGreaterEqual(event["ts"], 0)
            self.assertGreaterEqual(event["dur"], 0)
            self.assertIn((event["pid"], event["tid"]), lanes)
        self.assertEqual(set(kinds), {"M", "X"})
        self.assertEqual(min(event["ts"] for event in self.trace["traceEvents"] if "ts" in event), 0)

    def test_spans_of_a_lane_are_nested_or_apart(self):
        lanes = collections.defaultdict(list)
        for event in self.trace["traceEvents"]:
            if event["ph"] == "X":
                lanes[event["pid"], event["tid"]].append((event["ts"], -event["dur"]))
        checked = 0
        for spans in lanes.values():
            ends = []  # of the spans that contain the present one
            for begin, minus_length in sorted(spans):
                while ends and ends[-1] <= begin:
                    ends.pop()
                # Times are cut to whole microseconds.
                self.assertLessEqual(begin - minus_length, (ends[-1] if ends else float("inf")) + 1)
                ends.append(begin - minus_length)
                checked += 1
        self.assertGreater(checked, 1000)

    def test_every_activity_is_traced(self):
        self.assertEqual(set(self.processes()), {"server 0", "server 1", "worker 0", "worker 1"})
        steps = self.report["steps"]
        self.assertEqual(len(self.spans("step")), WORKERS * steps)
        self.assertEqual(len(self.spans("push until verdicts")), WORKERS * SERVERS * steps)
        self.assertEqual(len(self.spans("fold")), self.report["accepted_pushes"])
        for name in ("forward and backward", "wait for parameters", "wait for verdicts", "encode", "decode", "commit",
                     "encode parameters"):
            self.assertGreater(len(self.spans(name)), 0, name)
        self.assertEqual(len(self.spans("evaluation")), EPOCHS)

    def test_a_push_is_folded_while_its_worker_waits_for_the_verdict(self):
        processes = self.processes()
        info = {entry["process"]: entry for entry in self.trace["otherData"]["processes"]}
        waits = {(span["pid"], span["args"]["step"], lane): span for span in self.spans("push until verdicts")
                 for lane in [span["tid"]]}
        server_of_lane = {}
        for event in self.trace["traceEvents"]:
            if event["name"] == "thread_name" and event["args"]["name"].startswith("push to server"):
                server_of_lane[event["pid"], event["tid"]] = "server " + event["args"]["name"].split()[-1]
        of_server = {(pid, step, server_of_lane[pid, lane]): span for (pid, step, lane), span in waits.items()}
        names = {number: name for name, number in processes.items()}
        checked = 0
        for fold in self.spans("fold"):
            worker = f"worker {fold['args']['worker']}"
            server = names[fold["pid"]]
            wait = of_server[processes[worker], fold["args"]["step"], server]
            error = info[worker]["round_trip_us"] + info[server]["round_trip_us"] + 2
            self.assertGreaterEqual(fold["ts"], wait["ts"] - error)
            self.assertLessEqual(fold["ts"] + fold["dur"], wait["ts"] + wait["dur"] + error)
            checked += 1
        self.assertGreater(checked, 1000)
        for entry in info.values():
            self.assertTrue(entry["aligned"], entry)
            self.assertEqual(entry["dropped_spans"], 0)


if __name__ == "__main__":
    unittest.main()
