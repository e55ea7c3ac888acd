"""Compares texts that users see with golden files in tests/goldens/texts."""

import difflib
import os
import pathlib


def expect_golden(test, name, text):
    """Fails TEST if the golden file NAME differs from TEXT. If this run updates the golden files, writes TEXT instead.

    The environment variable THINWIRE_GOLDENS, which tests/goldens/update.sh sets, is the folder to update."""
    updated = os.environ.get("THINWIRE_GOLDENS")
    path = pathlib.Path(updated or "tests/goldens", "texts", name)
    golden = path.read_text(encoding="utf-8") if path.exists() else ""
    if golden == text:
        return
    if updated:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
        return
    diff = difflib.unified_diff(golden.splitlines(), text.splitlines(), f"{name} (golden file)", f"{name} (this build)",
                                n=1, lineterm="")
    test.fail("\n".join(["", *diff, f"To accept this change, run tests/goldens/update.sh and commit texts/{name}."]))
