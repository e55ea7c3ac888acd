"""Creates the folder of a bundle: programs, the shared libraries they need, scripts and data.

    bundle/run.sh          entry point; the scripts that it uses are in the same folder
    bundle/bin/NAME        programs; bin/worker and bin/laboratory start those in libexec/ with the host's LibTorch
    bundle/lib/            the needed shared libraries, except glibc, the C++ runtime, LibTorch and the GPU driver
    bundle/share/          requirements that the host must meet, job files, data
"""

import argparse
import functools
import pathlib
import re
import shutil
import subprocess
import sys

# Shared libraries that the host provides, so a bundle does not contain them.
HOST_LIBRARIES = re.compile(
    r"(ld-linux-x86-64|libc|libm|libdl|libpthread|librt|libresolv|libstdc\+\+|libgcc_s|libcuda|libtorch\w*|libc10\w*)"
    r"\.so[.\d]*"
)
HERE = pathlib.Path(__file__).resolve().parent
# Programs that need LibTorch.
TORCH_PROGRAMS = {"worker", "laboratory"}
SCRIPTS = ["run.sh", "run.py", "host.py", "lines.py", "torch_floor.py"]


@functools.lru_cache(maxsize=None)
def needed(path):
    """Returns the shared libraries that the file PATH needs. Cached; the file must not change afterwards."""
    output = subprocess.run(["readelf", "--dynamic", "--wide", path], capture_output=True, text=True, check=True).stdout
    return re.findall(r"\(NEEDED\).*\[(.*)\]", output)


def newest(paths, family):
    """Returns the newest symbol version, such as "2.36", of FAMILY, such as GLIBC, that the files PATHS need.

    Returns "0" if they need no symbol of FAMILY.
    """
    result = subprocess.run(["readelf", "--version-info", "--wide", *paths], capture_output=True, text=True, check=True)
    found = re.findall(rf"Name: {family}_([\d.]+)", result.stdout)
    return max(found, key=lambda version: [int(part) for part in version.split(".")], default="0")


def system_libraries():
    """Returns {name: file} of the shared libraries that the loader of this machine finds."""
    output = subprocess.run(["/sbin/ldconfig", "-p"], capture_output=True, text=True, check=True).stdout
    found = {}
    for name, path in re.findall(r"^\s+(\S+) \(libc6,x86-64.*\) => (\S+)$", output, re.MULTILINE):
        found.setdefault(name, pathlib.Path(path))
    return found


def missing(folder):
    """Returns a sorted list of texts "LIBRARY of FILE": FILE needs LIBRARY, but neither lib/ nor the host provides it."""
    found = set()
    for path in binaries(folder):
        for name in needed(path):
            if not HOST_LIBRARIES.fullmatch(name) and not (folder / "lib" / name).exists():
                found.add(f"{name} of {path.relative_to(folder)}")
    return sorted(found)


def binaries(folder):
    """Returns the ELF files of a bundle."""
    files = [path for part in ("bin", "libexec", "lib") for path in sorted((folder / part).glob("*"))]
    return [path for path in files if path.read_bytes()[:4] == b"\x7fELF"]


def copy_libraries(folder, libraries):
    """Copies to lib/ every library in LIBRARIES that a binary of the bundle needs, directly or indirectly."""
    unchecked = binaries(folder)
    while unchecked:
        for name in needed(unchecked.pop()):
            target = folder / "lib" / name
            if not HOST_LIBRARIES.fullmatch(name) and not target.exists() and name in libraries:
                shutil.copyfile(libraries[name], target)
                unchecked.append(target)


def torch_versions(package):
    """Returns the versions of a torch package and its CUDA: ("2.11.0", "13.0"), or ("2.11.0", "") without CUDA."""
    text = (package / "version.py").read_text()
    version = re.search(r"^__version__ = '([^'+]+)", text, re.MULTILINE)
    cuda = re.search(r"^cuda\b.*= '([^']+)'", text, re.MULTILINE)
    if not version:
        sys.exit(f"layout.py: {package}/version.py: no version (expected a line __version__ = '...', got none)")
    return version.group(1), cuda.group(1) if cuda else ""


def copy_program(source, target):
    shutil.copyfile(source, target)
    target.chmod(0o755)
    if target.read_bytes()[:4] == b"\x7fELF":
        subprocess.run(["strip", target], check=True)


def lay_out(folder, programs, share, torch, torch_cuda, revision):
    """Creates the bundle in FOLDER. PROGRAMS are pairs of a name and a file. Returns missing(FOLDER)."""
    for part in ("bin", "libexec", "lib", "share"):
        (folder / part).mkdir(parents=True)
    for name, source in programs:
        copy_program(source, folder / ("libexec" if name in TORCH_PROGRAMS else "bin") / name)
        if name in TORCH_PROGRAMS:
            copy_program(HERE / "worker.sh", folder / "bin" / name)
    copy_libraries(folder, system_libraries())
    for name in SCRIPTS:
        copy_program(HERE / name, folder / name)
    for source in share:
        shutil.copyfile(source, folder / "share" / source.name)
    elf = binaries(folder)
    requirements = {
        "glibc": newest(elf, "GLIBC"),
        "glibcxx": newest(elf, "GLIBCXX"),
        "torch": torch,
        "torch_cuda": torch_cuda,
        "revision": revision,
    }
    (folder / "share" / "requirements").write_text("".join(f"{name}={value}\n" for name, value in requirements.items()))
    return missing(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=pathlib.Path, required=True, help="folder of the bundle; must not exist")
    parser.add_argument("--program", action="append", required=True, metavar="NAME=FILE")
    parser.add_argument("--share", action="append", default=[], type=pathlib.Path, metavar="FILE")
    parser.add_argument("--torch_package", required=True, type=pathlib.Path, help="folder of the torch package of the build")
    parser.add_argument("--revision", default="unknown")
    flags = parser.parse_args()
    if flags.out.exists():
        sys.exit(f"layout.py: --out: folder exists (expected a new folder, got {flags.out})")
    programs = [tuple(program.split("=", 1)) for program in flags.program]
    torch, torch_cuda = torch_versions(flags.torch_package)
    not_found = lay_out(flags.out, programs, flags.share, torch, torch_cuda, flags.revision)
    for name in not_found:
        print(f"layout.py: shared library not found: {name}", file=sys.stderr)
    sys.exit(1 if not_found else 0)


if __name__ == "__main__":
    main()
