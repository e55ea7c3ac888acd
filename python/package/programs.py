"""The commands of the wheel: the programs in its folder bin/ (deploy/wheel.sh)."""

import os
import pathlib
import sys

FOLDER = pathlib.Path(__file__).resolve().parent / "bin"


def _run(name: str) -> None:
    program = FOLDER / name
    os.environ.setdefault("THINWIRE_PYTHON", sys.executable)  # for `thinwire launch PROGRAM.py`
    os.execv(program, [name, *sys.argv[1:]])


def thinwire() -> None:
    _run("thinwire")


def server() -> None:
    _run("thinwire-server")
