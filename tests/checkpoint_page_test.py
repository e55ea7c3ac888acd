"""Runs the Python program of docs/checkpoint.md on a checkpoint that the C++ code has written."""

import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WRITE_CHECKPOINT, PAGE = (pathlib.Path(argument) for argument in (sys.argv.pop(1), sys.argv.pop(1)))


class CheckpointPageTest(unittest.TestCase):
    def test_the_program_of_the_page_reads_a_checkpoint(self):
        programs = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
        self.assertEqual(len(programs), 1)
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([WRITE_CHECKPOINT, folder], check=True)
            printed = subprocess.run(
                [sys.executable, "-c", programs[0], folder], check=True, capture_output=True, text=True
            ).stdout
        self.assertEqual(printed, "tensor w ['2', '5']\nshard 0 version 41 sum 45.0\n")


if __name__ == "__main__":
    unittest.main()
