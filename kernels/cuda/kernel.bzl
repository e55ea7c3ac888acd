"""Macros for the targets of kernels/cuda/ops."""

load("//third_party/cuda:cuda_library.bzl", "cuda_library", "cuda_test")

def kernel(name, deps = [], host_deps = []):
    """A cuda_library of name.cu and name.h. Its functions launch kernels on a stream and return a status."""
    cuda_library(
        name = name,
        src = name + ".cu",
        hdrs = [name + ".h"],
        host_deps = host_deps,
        deps = [
            "//kernels/cuda/block:block",
            "//kernels/cuda/runtime:status",
            "//kernels/cuda/runtime:stream",
        ] + deps,
    )

def twin_test(name, deps = [], host_deps = [], size = "small"):
    """A cuda_test of name_test.cc, which compares the kernel of that name with its CPU twin."""
    cuda_test(
        name = name + "_test",
        size = size,
        srcs = [name + "_test.cc"],
        host_deps = host_deps,
        deps = [":" + name, ":twin_cases"] + deps,
    )
