"""The trials of an operator on three hosts: what he does, and the words and exit codes that he must see.

    operate --prefix PREFIX --programs FOLDER --work FOLDER [--only N,N...]    in the namespace of host 3; tests/operate.sh makes it
    operate --list

Every trial has a job of its own. The last line is `N passed, N failed`.
"""

import argparse
import os
import subprocess
import sys
import time
import traceback

from tests.operate import changes, ends, faults, starts, states
from tests.operate.site import Setting, Site
from tests.operate.trials import TRIALS
from tests.program import Failed

# In the order of their modules here.
ORDERED = [trial for module in (starts, faults, changes, states, ends) for trial in TRIALS if trial[1].__module__ == module.__name__]


def make_certificates_of_the_job(setting):
    """Makes the authority and one folder per process, as on the operator's own machine."""

    def certs(*arguments):
        subprocess.run([os.path.join(setting.programs, "thinwire"), "certs", *arguments], cwd=setting.work, check=True,
                       stdout=subprocess.DEVNULL)

    certs("init", "ca")
    for kind, numbers in (("server", range(3)), ("worker", range(4))):
        for number in numbers:
            certs("issue", "ca", "--role", kind, "--job", "operate", f"--{kind}", str(number), "--out", f"certs/{kind}-{number}")
    for role in ("worker", "operator", "viewer"):
        certs("issue", "ca", "--role", role, "--job", "operate", "--out", f"certs/{role}")


def run(setting, numbers):
    """Returns the number of failed trials."""
    failed = 0
    make_certificates_of_the_job(setting)
    for number in numbers:
        title, function = ORDERED[number - 1]
        begin = time.monotonic()
        try:
            with Site(setting, number) as site:
                function(site)
            verdict, error = "ok", ""
        except Exception as problem:  # the other trials must run
            failed += 1
            verdict = "FAILED"
            error = f"\n{problem}" if isinstance(problem, Failed) else f"\n{traceback.format_exc()}"
        print(f"{verdict} {number} {title} ({time.monotonic() - begin:.1f} s){error}", flush=True)
    print(f"{len(numbers) - failed} passed, {failed} failed")
    return failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--list", action="store_true")
    parser.add_argument("--prefix")
    parser.add_argument("--programs")
    parser.add_argument("--work")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    if options.list:
        for number, (title, _) in enumerate(ORDERED, 1):
            print(f"{number} {title}")
        return 0
    everything = [str(number) for number in range(1, len(ORDERED) + 1)]
    chosen = options.only.split(",") if options.only else everything
    if not set(chosen) <= set(everything):
        print(f"--only: wrong number (expected some of 1 to {len(ORDERED)}, got {options.only})", file=sys.stderr)
        return 64
    numbers = [int(number) for number in chosen]
    for name in [name for name in os.environ if name.startswith("THINWIRE_")]:
        del os.environ[name]  # the trials have settings of their own
    return 1 if run(Setting(options.prefix, options.programs, options.work), numbers) else 0


if __name__ == "__main__":
    sys.exit(main())
