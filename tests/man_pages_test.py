"""Writes the manual pages of the programs and checks them with mandoc."""

import pathlib
import subprocess
import sys
import tempfile
import unittest

SCRIPT, THINWIRE, SERVER, WORKER = sys.argv[1:5]
del sys.argv[1:5]


class ManPagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.folder = pathlib.Path(cls.temporary.name)
        subprocess.run([SCRIPT, THINWIRE, SERVER, WORKER, cls.folder], check=True)
        cls.pages = sorted(cls.folder.iterdir())

    @classmethod
    def tearDownClass(cls):
        cls.temporary.cleanup()

    def text(self, page):
        """Returns the page NAME as man shows it."""
        shown = subprocess.run(["mandoc", "-Tutf8", "-O", "width=200", self.folder / page], check=True,
                               capture_output=True, text=True).stdout
        # mandoc prints each bold or italic letter twice, with a backspace.
        return "".join(letter for i, letter in enumerate(shown)
                       if letter != "\b" and shown[i + 1:i + 2] != "\b")

    def test_mandoc_has_no_warning(self):
        for page in self.pages:
            lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", page], capture_output=True, text=True)
            self.assertEqual((lint.returncode, lint.stdout), (0, ""), page.name)

    def test_every_command_and_program_has_a_page(self):
        names = {page.name for page in self.pages}
        commands = subprocess.run([THINWIRE, "help"], check=True, capture_output=True, text=True).stdout
        commands = commands.split("Subcommands:\n")[1].split("\n\n")[0].splitlines()
        commands = [line.strip() for line in commands if line.startswith("  ") and line[2] != " "]
        self.assertIn("launch", commands)
        self.assertEqual(names, {"thinwire.1", "thinwire-server.1", "thinwire-worker.1"} |
                         {f"thinwire-{command}.1" for command in commands})

    def test_a_page_has_the_flags_the_examples_and_the_exit_codes(self):
        train = self.text("thinwire-train.1")
        self.assertIn("--push NAME", train)
        self.assertIn("THINWIRE_", train)
        self.assertIn("thinwire train --config examples/fashion_mnist.textproto", train)
        self.assertIn("78 configuration", train)
        self.assertIn("--man", self.text("thinwire-server.1"))
        self.assertIn("thinwire config check FILE", " ".join(self.text("thinwire-config.1").split())
                      .replace("[flags] ", ""))
        self.assertIn("NO_COLOR", self.text("thinwire.1"))


if __name__ == "__main__":
    unittest.main()
