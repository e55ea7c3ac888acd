"""What a bundle asks of its host: glibc, the C++ runtime, LibTorch, and for a GPU its driver."""

import ctypes
import os
import platform
import re
import subprocess


class Unfit(Exception):
    """What was wanted and what was found, in one line."""


def numbers(version):
    """"2.36" as (2, 36)."""
    return tuple(int(part) for part in version.split("."))


def read_requirements(bundle):
    """Name -> value of share/requirements, which layout.py wrote."""
    lines = (bundle / "share" / "requirements").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def check_at_least(what, wanted, found):
    if numbers(found) < numbers(wanted):
        raise Unfit(f"want {what} {wanted} or newer, found {found}")


def check_libraries(asked):
    """The processor, glibc and libstdc++."""
    if platform.machine() != "x86_64":
        raise Unfit(f"want an x86_64 processor, found {platform.machine()}")
    name, version = platform.libc_ver()
    if name != "glibc":
        raise Unfit(f"want glibc {asked['glibc']} or newer, found {name or 'another C library'}")
    check_at_least("glibc", asked["glibc"], version)
    try:
        ctypes.CDLL("libstdc++.so.6")
    except OSError as error:
        raise Unfit(f"want libstdc++.so.6, found none: {error}") from error
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = re.search(r"\S*/libstdc\+\+\.so\.6\S*", maps.read()).group(0)
    with open(path, "rb") as library:
        versions = re.findall(rb"GLIBCXX_([\d.]+)\0", library.read())
    found = max((version.decode() for version in versions), key=numbers)
    check_at_least(f"libstdc++ (of {path}) GLIBCXX", asked["glibcxx"], found)


def check_worker(bundle, environment):
    """Whether the worker starts with the host's LibTorch; what it says of itself."""
    said = subprocess.run([bundle / "bin" / "worker", "--version"], env=environment, capture_output=True, text=True)
    if said.returncode != 0:
        raise Unfit((said.stderr.strip() or f"bin/worker --version: exit code {said.returncode}").splitlines()[-1])
    return said.stdout.strip()


def gpus():
    """(CUDA version of the driver, names of the GPUs); (None, []) without a driver."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return None, []
    version, count = ctypes.c_int(), ctypes.c_int()
    driver.cuDriverGetVersion(ctypes.byref(version))
    text = f"{version.value // 1000}.{version.value % 1000 // 10}"
    if driver.cuInit(0) != 0 or driver.cuDeviceGetCount(ctypes.byref(count)) != 0:
        return text, []
    names = []
    for number in range(count.value):
        name = ctypes.create_string_buffer(256)
        driver.cuDeviceGetName(name, len(name), number)
        names.append(name.value.decode())
    return text, names


def choose_gpu(wanted, asked, driver, names):
    """The number of the GPU that WANTED (auto, cpu or cuda:N) is; None for the CPU."""
    if wanted == "cpu" or (wanted == "auto" and not names):
        return None
    number = 0 if wanted == "auto" else int(wanted.split(":")[1])
    if driver is None:
        raise Unfit(f"device {wanted}: want a driver for CUDA {asked['torch_cuda']}, found no libcuda.so.1")
    check_at_least("a driver for CUDA", asked["torch_cuda"] or "0", driver)
    if number >= len(names):
        raise Unfit(f"device {wanted}: want one of this machine's GPUs, found {len(names)}")
    return number


def visible(number, environment):
    """What CUDA_VISIBLE_DEVICES must say for one GPU of those that ENVIRONMENT shows."""
    shown = environment.get("CUDA_VISIBLE_DEVICES", "")
    return shown.split(",")[number] if shown else str(number)
