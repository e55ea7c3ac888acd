"""kernel and twin_test: the targets of a kernel, all of one shape."""

load("//third_party/cuda:cuda_library.bzl", "cuda_library", "cuda_test")

def kernel(name, deps = [], host_deps = []):
    """name.cu and name.h, whose launches take a stream and return a status."""
    cuda_library(
        name = name,
        src = name + ".cu",
        hdrs = [name + ".h"],
        host_deps = host_deps,
        deps = [":status", ":stream"] + deps,
    )

def twin_test(name, deps = [], host_deps = [], size = "small"):
    """name_test.cc, of what the target of that name does."""
    cuda_test(
        name = name + "_test",
        size = size,
        srcs = [name + "_test.cc"],
        host_deps = host_deps,
        deps = [":" + name, ":twin_test"] + deps,
    )
