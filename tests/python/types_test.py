"""Checks the types of the package with mypy, and compares the stub of the extension module with the module."""

import ast
import os
import subprocess
import sys
import unittest

from tests.python import jobs

from thinwire import _client  # noqa: E402


class TypesTest(unittest.TestCase):
    def test_mypy_accepts_the_package_and_a_program_that_uses_it(self):
        command = [sys.executable, "-m", "mypy", "--config-file", "tests/python/mypy.ini", "--cache-dir", os.devnull,
                   "--package", "thinwire", "--module", "typed_program"]
        done = subprocess.run(command, capture_output=True, text=True,
                              env=dict(os.environ, MYPYPATH=os.pathsep.join([jobs.PACKAGE, os.path.abspath("tests/python")])))
        self.assertRegex(done.stdout + done.stderr, r"^Success: no issues found in \d\d source files\n$")

    def test_an_installed_package_shows_its_types(self):
        self.assertTrue(os.path.exists(os.path.join(jobs.PACKAGE, "thinwire", "py.typed")))

    def test_the_stub_has_the_names_of_the_extension_module(self):
        with open(os.path.join(jobs.PACKAGE, "thinwire", "_client.pyi"), encoding="utf-8") as file:
            stub = ast.parse(file.read()).body
        classes = [node for node in stub if isinstance(node, ast.ClassDef)]
        functions = {node.name for node in stub if isinstance(node, ast.FunctionDef)}
        self.assertEqual(functions | {c.name for c in classes}, {name for name in dir(_client) if not name.startswith("_")})
        compared = 0
        for c in classes:
            own = {node.name for node in c.body if isinstance(node, ast.FunctionDef)} - {"__init__"}
            self.assertEqual(own, {name for name in vars(getattr(_client, c.name)) if not name.startswith("_")}, c.name)
            compared += len(own)
        self.assertGreater(compared, 30)


if __name__ == "__main__":
    unittest.main()
