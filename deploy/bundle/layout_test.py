"""Creates a bundle from the programs of this build and starts the programs as a user would."""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

import layout

THINWIRE, SERVER, WORKER, CONFIG, BUNDLE_SH = (pathlib.Path(name).resolve() for name in sys.argv[1:6])
del sys.argv[1:6]
DATA = "/usr/share/datasets/fashion-mnist"


def write_torch(folder, version, cuda):
    """Writes a torch package that contains only a version file. The worker still loads the LibTorch of this build."""
    (folder / "lib").mkdir(parents=True)
    cuda = f"'{cuda}'" if cuda else None
    (folder / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\n")
    return folder


class LayoutTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        output = subprocess.run([WORKER, "--version"], capture_output=True, text=True, check=True).stdout
        cls.version = output.split("LibTorch ")[1].split()[0]
        cls.torch = write_torch(cls.folder / "torch", cls.version, "")
        cls.bundle = cls.folder / "bundle"
        programs = [("thinwire", THINWIRE), ("server", SERVER), ("worker", WORKER)]
        cls.missing = layout.lay_out(cls.bundle, programs, [CONFIG], *layout.torch_versions(cls.torch), "abc123")

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def run_in(self, *command, torch=None, **environment):
        variables = {**os.environ, "THINWIRE_TORCH": str(torch or self.torch), **environment}
        return subprocess.run([str(word) for word in command], env=variables, capture_output=True, text=True)

    def test_every_library_is_in_the_bundle_or_on_the_host(self):
        self.assertEqual(self.missing, [])
        names = [path.name for path in (self.bundle / "lib").iterdir()]
        self.assertIn("libisal.so.2", names)
        self.assertEqual([name for name in names if layout.HOST_LIBRARIES.fullmatch(name)], [])

    def test_missing_library_is_named_with_its_user(self):
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place) / "bundle"
            shutil.copytree(self.bundle, copy)
            (copy / "lib" / "libisal.so.2").unlink()
            self.assertIn("libisal.so.2 of bin/thinwire", layout.missing(copy))

    def test_requirements_match_the_programs(self):
        requirements = dict(line.split("=") for line in (self.bundle / "share" / "requirements").read_text().split())
        self.assertEqual(requirements["torch"], self.version)
        self.assertEqual(requirements["torch_cuda"], "")
        self.assertEqual(requirements["revision"], "abc123")
        self.assertRegex(requirements["glibc"], r"^2\.\d+$")
        self.assertRegex(requirements["glibcxx"], r"^3\.4\.\d+$")

    def test_versions_are_read_from_a_torch_package(self):
        package = write_torch(self.folder / "other", "2.11.0+cu130", "13.0")
        self.assertEqual(layout.torch_versions(package), ("2.11.0", "13.0"))

    def test_worker_starts_with_the_given_libtorch(self):
        result = self.run_in(self.bundle / "bin" / "worker", "--version")
        self.assertEqual((result.returncode, result.stderr), (0, ""))
        self.assertIn(f"LibTorch {self.version}", result.stdout)

    def test_other_libtorch_version_is_a_one_line_error(self):
        expected = f"{self.version.rpartition('.')[0]} without CUDA"
        older = write_torch(self.folder / "older", "0.9.1+cu128", "12.8")
        nvidia = write_torch(self.folder / "nvidia", self.version + "+cu128", "12.8")
        nowhere = self.folder / "nowhere"
        for torch, found in [
            (older, f"0.9.1 with CUDA 12.8 in {older}"),
            (nvidia, f"{self.version} with CUDA 12.8 in {nvidia}"),
            (nowhere, f"none in {nowhere}, which has no version.py and lib/"),
        ]:
            result = self.run_in(self.bundle / "bin" / "worker", "--version", torch=torch)
            message = f"worker: wrong LibTorch (expected {expected}, got {found})\n"
            self.assertEqual((result.returncode, result.stderr), (78, message))

    def test_programs_find_each_other_and_train(self):
        report = self.folder / "report.json"
        result = self.run_in(
            *(self.bundle / "bin" / "thinwire", "train", "--config", self.bundle / "share" / CONFIG.name),
            *("--data_dir", DATA, "--device", "cpu", "--workers", "2", "--epochs", "1", "--train_examples", "256"),
            *("--test_examples", "64", "--report", report),
        )
        self.assertEqual(result.returncode, 0, result.stderr)
        self.assertEqual([row["state"] for row in json.loads(report.read_text())["worker_rows"]], ["done", "done"])

    def test_host_with_old_glibc_is_a_one_line_error(self):
        copy = self.folder / "newer"
        shutil.copytree(self.bundle, copy)
        requirements = copy / "share" / "requirements"
        requirements.write_text(requirements.read_text().replace("glibc=2", "glibc=9"))
        result = self.run_in(copy / "run.sh", "--device", "cpu")
        self.assertEqual(result.returncode, 78)
        self.assertRegex(result.stderr, r"^run\.sh: glibc: too old \(expected 9\.\d+ or newer, got 2\.\d+\)\n$")

    def test_host_without_libtorch_is_a_one_line_error(self):
        result = self.run_in(self.bundle / "run.sh", "--device", "cpu", "--torch", self.folder / "nowhere")
        self.assertEqual(result.returncode, 78)
        self.assertRegex(result.stderr, r"^run\.sh: worker: wrong LibTorch \(expected .*, got none in .*\)\n$")

    def test_wrong_flags_are_refused_before_the_build(self):
        full = self.folder / "full"
        (full / "include" / "torch").mkdir(parents=True)
        write_torch(full, self.version, "")
        parts = "with version.py, include/torch and lib/"
        for flags, code, message in [
            (
                [],
                64,
                "--torch: missing (expected the folder of a torch package, got none; --help says how to get one)",
            ),
            (["--torch"], 64, "--torch: missing value (expected one, got none)"),
            (["--touch", "x"], 64, "--touch: unknown flag (expected --torch, --out or --limit_mb)"),
            (["--torch", self.torch], 69, f"--torch: not a torch package (expected a folder {parts}, got {self.torch})"),
            (["--torch", full, "--limit_mb", "x"], 64, "--limit_mb: not a number (expected megabytes, got x)"),
            (
                ["--torch", full, "--out", self.torch],
                69,
                f"--out: folder exists (expected a new folder or an older bundle, got {self.torch})",
            ),
        ]:
            result = self.run_in(BUNDLE_SH, *flags, BAZEL="false")
            self.assertEqual((result.returncode, result.stderr), (code, f"bundle.sh: {message}\n"))


if __name__ == "__main__":
    unittest.main()
