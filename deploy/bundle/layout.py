"""Lays a bundle out: programs, the shared libraries they need, and what else travels.

    bundle/run.sh          and the scripts beside it
    bundle/bin/NAME        programs; bin/worker starts libexec/worker with the host's LibTorch
    bundle/lib/            every shared library but the host's own: glibc, the C++ runtime, LibTorch, the driver
    bundle/share/          what is asked of the host (requirements), configurations, data
"""

import argparse
import functools
import pathlib
import re
import shutil
import subprocess
import sys

# What a bundle takes from its host.
HOSTS_OWN = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|libcuda|libtorch\w*|libc10\w*)"
    r"\.so[.\d]*"
)
HERE = pathlib.Path(__file__).resolve().parent
SCRIPTS = ["run.sh", "run.py", "host.py", "lines.py", "torch_floor.py"]


@functools.lru_cache(maxsize=None)
def needed(path):
    """The shared libraries that the file PATH names, which nobody changes any more."""
    said = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", said)


def newest(paths, family):
    """The newest version of a FAMILY of symbols, such as GLIBC, that PATHS ask for: "2.36"; "0" if none does."""
    said = subprocess.run(["readelf", "--version-info", "--wide", *paths], capture_output=True, text=True, check=True)
    found = re.findall(rf"Name: {family}_([\d.]+)", said.stdout)
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default="0")


def system_libraries():
    """Name -> file, as the loader of this machine finds them."""
    said = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, path in re.findall(r"^\s+(\S+) \(libc6,x86-64.*\) => (\S+)$", said, re.MULTILINE):
        found.setdefault(name, pathlib.Path(path))
    return found


def missing(folder):
    """The libraries that something in bin/, libexec/ or lib/ needs and that neither lib/ nor a host has, sorted."""
    lacking = set()
    for path in binaries(folder):
        for name in needed(path):
            if not HOSTS_OWN.fullmatch(name) and not (folder / "lib" / name).exists():
                lacking.add(f"{name} of {path.relative_to(folder)}")
    return sorted(lacking)


def binaries(folder):
    """The ELF files of a bundle."""
    files = [path for part in ("bin", "libexec", "lib") for path in sorted((folder / part).glob("*"))]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def copy_libraries(folder, libraries):
    """Copies what the binaries need, and what that needs. Whatever is not among LIBRARIES stays missing."""
    to_do = binaries(folder)
    while to_do:
        for name in needed(to_do.pop()):
            target = folder / "lib" / name
            if not HOSTS_OWN.fullmatch(name) and not target.exists() and name in libraries:
                shutil.copyfile(libraries[name], target)
                to_do.append(target)


def torch_versions(package):
    """Of a torch package and of its CUDA: ("2.11.0", "13.0"), the latter empty if it has none."""
    text = (package / "version.py").read_text()
    version = re.search(r"^__version__ = '([^'+]+)", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b.*= '([^']+)'", text, re.MULTILINE)
    if not version:
        sys.exit(f"layout.py: {package}/version.py: want a line __version__ = '...', found none")
    return version.group(1), cuda.group(1) if cuda else ""


def copy_program(source, target):
    shutil.copyfile(source, target)
    target.chmod(0o755)
    if target.read_bytes()[:4] == b"\x7fELF":
        subprocess.run(["strip", target], check=True)


def lay_out(folder, programs, share, torch, torch_cuda, revision):
    """Fills the empty FOLDER; PROGRAMS are (name, file). The libraries that are missing then, as `missing` says."""
    for part in ("bin", "libexec", "lib", "share"):
        (folder / part).mkdir(parents=True)
    for name, source in programs:
        copy_program(source, folder / ("libexec" if name == "worker" else "bin") / name)
    copy_libraries(folder, system_libraries())
    copy_program(HERE / "worker.sh", folder / "bin" / "worker")
    for name in SCRIPTS:
        copy_program(HERE / name, folder / name)
    for source in share:
        shutil.copyfile(source, folder / "share" / source.name)
    elf = binaries(folder)
    asked = {
        "glibc": newest(elf, "GLIBC"),
        "glibcxx": newest(elf, "GLIBCXX"),
        "torch": torch,
        "torch_cuda": torch_cuda,
        "revision": revision,
    }
    (folder / "share" / "requirements").write_text("".join(f"{name}={value}\n" for name, value in asked.items()))
    return missing(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="the bundle's folder; must not exist")
    parser.add_argument("--program", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--share", action="append", default=[], type=pathlib.Path, metavar="FILE")
    parser.add_argument("--torch_package", required=True, type=pathlib.Path, help="that the worker was built for")
    parser.add_argument("--revision", default="unknown")
    asked = parser.parse_args()
    if asked.out.exists():
        sys.exit(f"layout.py: {asked.out}: want a folder that is not there yet")
    programs = [tuple(program.split("=", 1)) for program in asked.program]
    torch, torch_cuda = torch_versions(asked.torch_package)
    lacking = lay_out(asked.out, programs, asked.share, torch, torch_cuda, asked.revision)
    for name in lacking:
        print(f"layout.py: found no {name}", file=sys.stderr)
    sys.exit(1 if lacking else 0)


if __name__ == "__main__":
    main()
