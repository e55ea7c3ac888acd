"""Checks the requirements of a bundle on its host: glibc, the C++ runtime, LibTorch, and the GPU driver."""

import ctypes
import os
import platform
import re
import subprocess


class Unfit(Exception):
    """The host does not meet a requirement. The message is one line with the expected and the actual version."""


def numbers(version):
    """Returns a version such as "2.36" as a tuple of numbers: (2, 36)."""
    return tuple(int(part) for part in version.split("."))


def read_requirements(bundle):
    """Returns the requirements, name -> value, that layout.py wrote to share/requirements."""
    lines = (bundle / "share" / "requirements").read_text().splitlines()
    return dict(line.split("=", 1) for line in lines)


def check_at_least(what, expected, found):
    """Raises Unfit if version FOUND of WHAT is older than EXPECTED."""
    if numbers(found) < numbers(expected):
        raise Unfit(f"{what}: too old (expected {expected} or newer, got {found})")


def check_libraries(requirements):
    """Checks the processor and the versions of glibc and libstdc++. Raises Unfit if one does not meet REQUIREMENTS."""
    if platform.machine() != "x86_64":
        raise Unfit(f"processor: not supported (expected x86_64, got {platform.machine()})")
    name, version = platform.libc_ver()
    if name != "glibc":
        raise Unfit(f"C library: not supported (expected glibc, got {name or 'another library'})")
    check_at_least("glibc", requirements["glibc"], version)
    try:
        ctypes.CDLL("libstdc++.so.6")
    except OSError as error:
        raise Unfit(f"libstdc++.so.6: cannot be loaded: {error}") from error
    with open("/proc/self/maps", encoding="utf-8") as maps:
        path = re.search(r"\S*/libstdc\+\+\.so\.6\S*", maps.read()).group(0)
    with open(path, "rb") as library:
        versions = re.findall(rb"GLIBCXX_([\d.]+)\0", library.read())
    found = max((version.decode() for version in versions), key=numbers)
    check_at_least(f"{path}: GLIBCXX", requirements["glibcxx"], found)


def check_worker(bundle, environment):
    """Returns the version line of the worker. Raises Unfit if it does not start with the host's LibTorch."""
    result = subprocess.run([bundle / "bin" / "worker", "--version"], env=environment, capture_output=True, text=True)
    if result.returncode != 0:
        raise Unfit((result.stderr.strip() or f"bin/worker --version: exit code {result.returncode}").splitlines()[-1])
    return result.stdout.strip()


def gpus():
    """Returns the CUDA version of the driver and the names of the GPUs, or (None, []) without a driver."""
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


def choose_gpu(device, requirements, driver, names):
    """Returns the number of the GPU for DEVICE (auto, cpu or cuda:N), or None for the CPU."""
    if device == "cpu" or (device == "auto" and not names):
        return None
    number = 0 if device == "auto" else int(device.split(":")[1])
    cuda = requirements["torch_cuda"]
    if driver is None:
        raise Unfit(f"--device {device}: no GPU driver (expected one for CUDA {cuda}, got no libcuda.so.1)")
    check_at_least("CUDA version of the GPU driver", cuda or "0", driver)
    if number >= len(names):
        raise Unfit(f"--device {device}: no such GPU (expected a number below {len(names)}, got {number})")
    return number


def visible(number, environment):
    """Returns the value of CUDA_VISIBLE_DEVICES that selects GPU NUMBER among the GPUs visible in ENVIRONMENT."""
    shown = environment.get("CUDA_VISIBLE_DEVICES", "")
    return shown.split(",")[number] if shown else str(number)
