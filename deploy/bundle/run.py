"""Runs the GPU tests and benchmarks of a bundle and trains ResNet-20 on this machine in every mode. Prints a table and
writes it, with the output of all programs, to a folder. Exit code 0: everything passed; 1: something failed; 78: this
machine does not meet a requirement of the bundle."""

import argparse
import json
import os
import pathlib
import re
import subprocess
import sys

import host
import lines

BUNDLE = pathlib.Path(__file__).resolve().parent
# The flags of `thinwire train` for each mode. The ssp and async modes use a lower momentum, because stale gradients act
# like additional momentum. They use a lower learning rate, because an update contains the gradient of a single worker's
# batch (docs/training.md).
MODES = {
    "sync": [],
    "backup": ["--backup", "1"],
    "ssp": ["--slack", "4", "--momentum", "0.5", "--learning_rate", "0.05"],
    "async": ["--momentum", "0.5", "--learning_rate", "0.05"],
}
# Training runs on a CPU use only a few examples, enough to show that training works. Training runs on a GPU use all
# examples.
FEW_EXAMPLES = ["--train_examples", "1024", "--test_examples", "512"]


class Report:
    """Collects the rows of the table and records whether all of them passed. Each new row rewrites the output files."""

    def __init__(self, about, folder):
        self.about = about  # a line that describes the machine and the build
        self.folder = folder
        self.rows = []
        self.good = True

    def add(self, row, good=True):
        self.rows.append(row)
        self.good = self.good and good
        print(" | ".join(part for part in row if part), flush=True)
        table = {"about": self.about, "good": self.good, "rows": self.rows}
        (self.folder / "rows.json").write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")
        (self.folder / "table.md").write_text(self.text(), encoding="utf-8")

    def run(self, name, command, environment, seconds):
        """Runs COMMAND with its output in NAME.log. Returns the exit code, or a text for a timeout or a signal."""
        with open(self.folder / f"{name}.log", "w", encoding="utf-8") as log:
            try:
                code = subprocess.run(
                    command, env=environment, stdout=log, stderr=subprocess.STDOUT, timeout=seconds, check=False
                ).returncode
            except subprocess.TimeoutExpired:
                return f"still running after {seconds} s"
        return code if code >= 0 else f"killed by signal {-code}"

    def output(self, name):
        return (self.folder / f"{name}.log").read_text(encoding="utf-8", errors="replace")

    def failed(self, name, log, code):
        """Adds a row for a program that ended with CODE, with the last line of its output."""
        output = self.output(log).strip().splitlines()
        text = " ".join(output[-1].split()) if output else "no output"
        self.add((name, f"ended with {code}: {text}", "result: NO"), good=False)

    def text(self):
        return f"{self.about}\n\n{lines.table(self.rows)}"


def run_tests(report, device, environment):
    for program in sorted((BUNDLE / "bin").glob("*gpu_test")):
        result = report.folder / f"{program.name}.json"
        result.unlink(missing_ok=True)
        code = report.run(program.name, [program, f"--gtest_output=json:{result}"], environment, 900)
        read = lines.read_json(result)
        if read is None:
            report.failed(program.name, program.name, code)
        else:
            row, good = lines.tests_row(program.name, read, gpu=device != "cpu")
            report.add(row, good and code == 0)


def run_benchmarks(report, device, environment):
    commands = {"torch_floor": [sys.executable, BUNDLE / "torch_floor.py", device]}
    if device != "cpu":
        commands = {"bench_gpu": [BUNDLE / "bin" / "bench_gpu"], **commands}
    figures = {}
    for name, command in commands.items():
        code = report.run(name, command, environment, 900)
        found = lines.measured(report.output(name))
        figures.update(found)
        if code != 0 or not found:
            report.failed(name, name, code)
    for row in lines.figure_rows(figures):
        report.add(row)


def train(report, flags, device, environment):
    share = BUNDLE / "share"
    examples = FEW_EXAMPLES if device == "cpu" else []
    epochs = flags.epochs or (1 if device == "cpu" else 4)
    for mode in flags.modes.split():
        result = report.folder / f"train_{mode}.json"
        result.unlink(missing_ok=True)
        command = [BUNDLE / "bin" / "thinwire", "train", "--config", share / "fashion_mnist_resnet20.textproto"]
        command += ["--data_dir", share, "--device", device, "--epochs", str(epochs), "--mode", mode, *MODES[mode]]
        command += [*examples, *flags.more, "--report", result]
        code = report.run(f"train_{mode}", command, environment, 3600)
        read = lines.read_json(result)
        if read is None or code != 0:
            report.failed(f"resnet20 {mode}", f"train_{mode}", code)
        else:
            report.add(*lines.training_row(f"resnet20 {mode}, push {read['push']}", read))


def arguments(words):
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N; auto is cuda:0 if there is a GPU")
    torch = os.environ.get("THINWIRE_TORCH")
    about = "folder of the torch package; default: $THINWIRE_TORCH, else the package that Python imports"
    parser.add_argument("--torch", type=pathlib.Path, default=torch and pathlib.Path(torch), help=about)
    parser.add_argument("--out", type=pathlib.Path, default="bundle_report", help="folder for the reports")
    parser.add_argument("--modes", default=" ".join(MODES), help="training modes, separated by blanks")
    parser.add_argument("--epochs", type=int, default=0, help="training epochs; 0: 4 on a GPU, 1 with few examples on a CPU")
    parser.add_argument("more", nargs="*", metavar="-- FLAG", help="flags for thinwire train, such as -- --push topk")
    flags = parser.parse_args(words)
    for mode in flags.modes.split():
        if mode not in MODES:
            parser.error(f"--modes: unknown mode (expected {', '.join(MODES)}, got {mode})")
    if not re.fullmatch(r"auto|cpu|cuda:\d+", flags.device):
        parser.error(f"--device: unknown device (expected auto, cpu or cuda:N, got {flags.device})")
    return flags


def environment_of(flags):
    """Returns the environment of the programs, including the torch package that FLAGS chooses, if any."""
    environment = dict(os.environ)
    if flags.torch:
        torch = flags.torch.resolve()
        environment["THINWIRE_TORCH"] = str(torch)
        environment["PYTHONPATH"] = str(torch.parent)
    return environment


def main(words):
    flags = arguments(words)
    environment = environment_of(flags)
    try:
        requirements = host.read_requirements(BUNDLE)
        host.check_libraries(requirements)
        driver, names = host.gpus()
        number = host.choose_gpu(flags.device, requirements, driver, names)
        worker = host.check_worker(BUNDLE, environment)
    except host.Unfit as unfit:
        print(f"run.sh: {unfit}", file=sys.stderr)
        return 78
    flags.out.mkdir(parents=True, exist_ok=True)
    device, place = "cpu", "on the CPU"
    if number is not None:  # hides all GPUs except the chosen one from the programs
        environment["CUDA_VISIBLE_DEVICES"] = host.visible(number, environment)
        device, place = "cuda:0", f"on {names[number]} (driver for CUDA {driver})"
    about = f"{worker}, revision {requirements['revision']}, {os.cpu_count()} CPU cores, {place}"
    print(about + "\n", flush=True)
    report = Report(about, flags.out)
    run_tests(report, device, environment)
    run_benchmarks(report, device, environment)
    train(report, flags, device, environment)
    print(f"\n{report.text()}\nThe output of all programs is in {flags.out}.")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
