"""Runs the GPU tests and benchmarks of a bundle, trains ResNet-20 by its worker against its servers on this machine in
every mode, prints a table, and writes it with everything that was said to a folder. Exit code 0: nothing failed; 1:
something did; 78: this machine lacks what the bundle asks for."""

import argparse
import json
import os
import pathlib
import subprocess
import sys

import host
import lines

BUNDLE = pathlib.Path(__file__).resolve().parent
# Stale gradients act as momentum of their own, and an update of theirs is one worker's batch (docs/training.md).
MODES = {
    "sync": [],
    "backup": ["--backup", "1"],
    "ssp": ["--slack", "4", "--momentum", "0.5", "--learning_rate", "0.05"],
    "async": ["--momentum", "0.5", "--learning_rate", "0.05"],
}
# A GPU trains on all examples; a CPU only shows that it works.
FEW_EXAMPLES = ["--train_examples", "1024", "--test_examples", "512"]


class Report:
    """Rows of the table, and whether all of them are good."""

    def __init__(self, folder):
        self.folder = folder
        self.rows = []
        self.good = True

    def add(self, row, good=True):
        self.rows.append(row)
        self.good = self.good and good
        print(" | ".join(part for part in row if part), flush=True)

    def run(self, name, command, environment, seconds):
        """Runs COMMAND with what it says in NAME.log; the exit code, or what became of it in words."""
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

    def write(self, about):
        text = about + "\n" + lines.table(self.rows)
        (self.folder / "table.md").write_text(text, encoding="utf-8")
        (self.folder / "rows.json").write_text(json.dumps({"about": about, "good": self.good, "rows": self.rows}, indent=1))
        return text


def run_tests(report, device, environment):
    for program in sorted((BUNDLE / "bin").glob("*gpu_test")):
        result = report.folder / f"{program.name}.json"
        code = report.run(program.name, [program, f"--gtest_output=json:{result}"], environment, 900)
        read = lines.read_json(result)
        if read is None:
            report.add((program.name, f"no result: {code}", "none failed: NO"), good=False)
        else:
            row, good = lines.tests_row(program.name, read, gpu=device != "cpu")
            report.add(row, good and code == 0)


def run_benchmarks(report, device, environment):
    figures = {}
    commands = {"torch_floor": [sys.executable, BUNDLE / "torch_floor.py", device]}
    if device != "cpu":
        commands = {"bench_gpu": [BUNDLE / "bin" / "bench_gpu"], **commands}
        environment = {**environment, "CUDA_VISIBLE_DEVICES": device.split(":")[1]}
        commands["torch_floor"][-1] = "cuda:0"
    for name, command in commands.items():
        code = report.run(name, command, environment, 900)
        figures.update(lines.measured(report.output(name)))
        if code != 0:
            said = report.output(name).strip().splitlines()
            report.add((name, f"ended with {code}: {said[-1] if said else 'nothing said'}", "0: NO"), good=False)
    for row in lines.figure_rows(figures):
        report.add(row)


def train(report, asked, device, environment):
    examples = FEW_EXAMPLES if device == "cpu" else []
    epochs = asked.epochs or (1 if device == "cpu" else 4)
    for mode in asked.modes.split():
        name = f"resnet20 {mode}"
        result = report.folder / f"train_{mode}.json"
        command = [BUNDLE / "bin" / "thinwire", "train", "--config", BUNDLE / "share" / "fashion_mnist_resnet20.textproto"]
        command += ["--data_dir", BUNDLE / "share", "--device", device, "--epochs", str(epochs), "--mode", mode]
        command += [*MODES[mode], *examples, *asked.more, "--report", result]
        code = report.run(f"train_{mode}", command, environment, 3600)
        read = lines.read_json(result)
        if read is None or code != 0:
            said = report.output(f"train_{mode}").strip().splitlines()
            report.add((name, f"ended with {code}: {said[-1] if said else 'nothing said'}", "0: NO"), good=False)
        else:
            report.add(*lines.training_row(f"{name}, push {read['push']}", read))


def arguments(words):
    parser = argparse.ArgumentParser(prog="run.sh", description=__doc__)
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda:N; auto is cuda:0 where there is a GPU")
    parser.add_argument("--torch", type=pathlib.Path, help="the folder of the torch package; else what Python would import")
    parser.add_argument("--out", type=pathlib.Path, default="bundle_report", help="the folder of the reports")
    parser.add_argument("--modes", default=" ".join(MODES), help="in which to train, between blanks")
    parser.add_argument("--epochs", type=int, default=0, help="of training; 0: 4 on a GPU, on a CPU one of few examples")
    parser.add_argument("more", nargs="*", metavar="-- FLAG", help="flags of thinwire train, such as -- --push topk")
    asked = parser.parse_args(words)
    for mode in asked.modes.split():
        if mode not in MODES:
            parser.error(f"--modes: want some of {', '.join(MODES)}, got {mode}")
    number = asked.device.removeprefix("cuda:")
    if asked.device not in ("auto", "cpu") and not (asked.device != number and number.isdigit()):
        parser.error(f"--device: want auto, cpu or cuda:N, got {asked.device}")
    return asked


def environment_of(asked):
    """What the programs see: the torch package that was chosen, if one was."""
    environment = dict(os.environ)
    if asked.torch:
        torch = asked.torch.resolve()
        environment["THINWIRE_TORCH"] = str(torch)
        environment["PYTHONPATH"] = str(torch.parent)
    return environment


def main(words):
    asked = arguments(words)
    environment = environment_of(asked)
    try:
        requirements = host.read_requirements(BUNDLE)
        host.check_libraries(requirements)
        driver, names = host.gpus()
        device = host.choose_device(asked.device, requirements, driver, names)
        worker = host.check_worker(BUNDLE, environment)
    except host.Unfit as unfit:
        print(f"run.sh: {unfit}", file=sys.stderr)
        return 78
    asked.out.mkdir(parents=True, exist_ok=True)
    about = f"thinwire {requirements['revision']}, {worker}, device {device}: {', '.join(names) or 'no GPU'}, driver for "
    about += f"CUDA {driver or '-'}, {os.cpu_count()} CPU cores\n"
    print(about, flush=True)
    report = Report(asked.out)
    run_tests(report, device, environment)
    run_benchmarks(report, device, environment)
    train(report, asked, device, environment)
    print("\n" + report.write(about) + f"\nEverything that was said is in {asked.out}.")
    return 0 if report.good else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
