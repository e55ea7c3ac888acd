#!/usr/bin/env python3
"""Writes the report of an experiment (docs/experiments.md).

    report.py DIR

Reads the files that `laboratory run` wrote to DIR and writes DIR/report.html. The same files give the same page.
"""

import os
import pathlib
import sys

import page
import results

USAGE, CONFIGURATION = 64, 78  # common/base/exit_code.h


def main(arguments):
    if arguments in (["--help"], ["-h"]):
        print(__doc__.strip())
        return 0
    if len(arguments) != 1 or arguments[0].startswith("-"):
        print(f"report.py: wrong arguments (expected one folder, got {' '.join(arguments) or 'none'})", file=sys.stderr)
        return USAGE
    folder = pathlib.Path(arguments[0])
    try:
        text = page.write(results.read_experiment(folder))
        unfinished = folder / "report.html.new"
        unfinished.write_text(text, encoding="utf-8")
        os.replace(unfinished, folder / "report.html")
    except results.ResultError as error:
        print(f"report.py: {error}", file=sys.stderr)
        return CONFIGURATION
    except OSError as error:
        print(f"report.py: {error.filename}: cannot be written: {error.strerror}", file=sys.stderr)
        return CONFIGURATION
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
