"""The list of the trials, and what several of them do."""

import os
import signal
import subprocess

TRIALS = []  # (title, function of a Site)


def trial(title):
    """Adds the function to the trials."""

    def add(function):
        TRIALS.append((title, function))
        return function

    return add


def gather(site):
    """Copies the server folders of both hosts to the folder `all` of host 3, as before an import."""
    for number in (0, 1):
        source = site.path(f"host{number + 1}/server-{number}")
        subprocess.run(["cp", "-a", source, "--target-directory", make_folder(site, "all")], check=True)


def make_folder(site, name):
    os.makedirs(site.path(name), exist_ok=True)
    return site.path(name)


def stop(site):
    """Stops all processes in order."""
    for kind in ("worker", "server"):
        for number in (0, 1):
            site.started[f"{kind}{number}"].signal(signal.SIGTERM)
        for number in (0, 1):
            site.ends(f"{kind}{number}", 75 if kind == "worker" else 0)
