"""Lays a bundle out from the programs of this build and starts them as a user would."""

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
    """A folder like that of a torch package; LibTorch itself is found where this build has it."""
    (folder / "lib").mkdir(parents=True)
    cuda = f"'{cuda}'" if cuda else None
    (folder / "version.py").write_text(f"__version__ = '{version}'\ndebug = False\ncuda: Optional[str] = {cuda}\n")
    return folder


class LayoutTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.place = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.place.name)
        said = subprocess.run([WORKER, "--version"], capture_output=True, text=True, check=True).stdout
        cls.version = said.split("LibTorch ")[1].split()[0]
        cls.torch = write_torch(cls.folder / "torch", cls.version, "")
        cls.bundle = cls.folder / "bundle"
        programs = [("thinwire", THINWIRE), ("server", SERVER), ("worker", WORKER)]
        cls.lacking = layout.lay_out(cls.bundle, programs, [CONFIG], *layout.torch_versions(cls.torch), "abc123")

    @classmethod
    def tearDownClass(cls):
        cls.place.cleanup()

    def run_in(self, *command, torch=None, **environment):
        words = {**os.environ, "THINWIRE_TORCH": str(torch or self.torch), **environment}
        return subprocess.run([str(word) for word in command], env=words, capture_output=True, text=True)

    def test_every_library_comes_along_or_is_the_hosts_own(self):
        self.assertEqual(self.lacking, [])
        names = [path.name for path in (self.bundle / "lib").iterdir()]
        self.assertIn("libisal.so.2", names)
        self.assertEqual([name for name in names if layout.HOSTS_OWN.fullmatch(name)], [])

    def test_a_library_that_is_not_there_is_named_with_who_needs_it(self):
        with tempfile.TemporaryDirectory() as place:
            copy = pathlib.Path(place) / "bundle"
            shutil.copytree(self.bundle, copy)
            (copy / "lib" / "libisal.so.2").unlink()
            self.assertIn("libisal.so.2 of bin/thinwire", layout.missing(copy))

    def test_the_requirements_are_those_of_the_programs(self):
        asked = dict(line.split("=") for line in (self.bundle / "share" / "requirements").read_text().split())
        self.assertEqual(asked["torch"], self.version)
        self.assertEqual(asked["torch_cuda"], "")
        self.assertEqual(asked["revision"], "abc123")
        self.assertRegex(asked["glibc"], r"^2\.\d+$")
        self.assertRegex(asked["glibcxx"], r"^3\.4\.\d+$")

    def test_versions_are_read_from_a_torch_package(self):
        package = write_torch(self.folder / "other", "2.11.0+cu130", "13.0")
        self.assertEqual(layout.torch_versions(package), ("2.11.0", "13.0"))

    def test_the_worker_starts_with_the_libtorch_it_is_told(self):
        said = self.run_in(self.bundle / "bin" / "worker", "--version")
        self.assertEqual((said.returncode, said.stderr), (0, ""))
        self.assertIn(f"LibTorch {self.version}", said.stdout)

    def test_another_libtorch_is_one_clear_line(self):
        want = f"worker: want LibTorch {self.version.rpartition('.')[0]} with CUDA none, found "
        older = write_torch(self.folder / "older", "0.9.1+cu128", "12.8")
        nvidia = write_torch(self.folder / "nvidia", self.version + "+cu128", "12.8")
        nowhere = self.folder / "nowhere"
        for torch, found in [
            (older, f"0.9.1 at {older}"),
            (nvidia, f"{self.version} with CUDA 12.8 at {nvidia}"),
            (nowhere, f"none at {nowhere}, which has no version.py and lib/"),
        ]:
            said = self.run_in(self.bundle / "bin" / "worker", "--version", torch=torch)
            self.assertEqual((said.returncode, said.stderr), (78, want + found + "\n"))

    def test_its_programs_find_each_other_and_train(self):
        report = self.folder / "report.json"
        said = self.run_in(
            *(self.bundle / "bin" / "thinwire", "train", "--config", self.bundle / "share" / CONFIG.name),
            *("--data_dir", DATA, "--device", "cpu", "--workers", "2", "--epochs", "1", "--train_examples", "256"),
            *("--test_examples", "64", "--report", report),
        )
        self.assertEqual(said.returncode, 0, said.stderr)
        self.assertEqual([row["state"] for row in json.loads(report.read_text())["worker_rows"]], ["done", "done"])

    def test_a_host_that_is_too_old_is_one_clear_line(self):
        copy = self.folder / "newer"
        shutil.copytree(self.bundle, copy)
        requirements = copy / "share" / "requirements"
        requirements.write_text(requirements.read_text().replace("glibc=2", "glibc=9"))
        said = self.run_in(copy / "run.sh", "--device", "cpu")
        self.assertEqual(said.returncode, 78)
        self.assertRegex(said.stderr, r"^run\.sh: want glibc 9\.\d+ or newer, found 2\.\d+\n$")

    def test_a_host_without_the_libtorch_is_one_clear_line(self):
        said = self.run_in(self.bundle / "run.sh", "--device", "cpu", "--torch", self.folder / "nowhere")
        self.assertEqual(said.returncode, 78)
        self.assertRegex(said.stderr, r"^run\.sh: worker: want LibTorch .* found none at .*\n$")

    def test_what_cannot_become_a_bundle_is_said_before_anything_is_built(self):
        full = self.folder / "full"
        (full / "include" / "torch").mkdir(parents=True)
        write_torch(full, self.version, "")
        parts = "with version.py, include/torch and lib/"
        for flags, code, message in [
            ([], 64, "want --torch DIR, the folder of a torch package; --help tells how to get one"),
            (["--torch"], 64, "--torch: want a value, got none"),
            (["--touch", "x"], 64, "--touch: unknown; --help tells the flags"),
            (["--torch", self.torch], 69, f"--torch {self.torch}: want a torch package {parts}"),
            (["--torch", full, "--limit_mb", "x"], 64, "--limit_mb: want a number of megabytes, got x"),
            (
                ["--torch", full, "--out", self.torch],
                69,
                f"--out {self.torch}: want a folder that is not there yet, or an older bundle",
            ),
        ]:
            said = self.run_in(BUNDLE_SH, *flags, BAZEL="false")
            self.assertEqual((said.returncode, said.stderr), (code, f"bundle.sh: {message}\n"))


if __name__ == "__main__":
    unittest.main()
